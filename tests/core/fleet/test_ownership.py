"""Who owns a node: the documented test vectors, and what moves when members come and go."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from moorage.wire.rendezvous import owner, score
from tests.floorplan.tidy import ROOT

NODES = [f"{n:08d}-0000-4000-8000-000000000000" for n in range(200)]
MEMBERS = st.sets(st.text("abc.:-019", min_size=1, max_size=6), min_size=1, max_size=8)

ONE, TWO, THREE = (
    "6e0f3c52-0000-4000-8000-000000000001",
    "6e0f3c52-0000-4000-8000-000000000002",
    "c0000000-0000-4000-8000-000000000003",
)
VECTORS = {
    ("reporter-1", ONE): 3939724213520104986,
    ("reporter-1", TWO): 4526274371640807038,
    ("reporter-1", THREE): 15193877694565259607,
    ("reporter-2", ONE): 14840739482440215068,
    ("reporter-2", TWO): 7301252254685270251,
    ("reporter-2", THREE): 1406754386736857753,
    ("conductor.example.org", ONE): 8825581296432951354,
    ("conductor.example.org", TWO): 713337317149062769,
    ("conductor.example.org", THREE): 6944607430521255145,
}
"""Scores, as in the reference of the native API."""

REFERENCE = ROOT / "docs/reference/native-api.md"


def test_vectors() -> None:
    """The scores of the reference are those of the function, and decide who owns a node."""
    text = REFERENCE.read_text()
    for (member, node), expected in VECTORS.items():
        assert score(member, node) == expected
        assert f"| `{member}` | `{node}` | {expected} |" in text
    members = ["reporter-1", "reporter-2", "conductor.example.org"]
    assert [owner(node, members) for node in (ONE, TWO, THREE)] == [
        "reporter-2",
        "reporter-2",
        "reporter-1",
    ]
    assert owner(ONE, members, pin="elsewhere") == "elsewhere"
    assert owner(ONE, []) is None


@given(MEMBERS, st.data())
def test_only_the_nodes_of_a_member_that_leaves_move(
    members: set[str], data: st.DataObject
) -> None:
    """All others stay where they are; the same holds backwards for one that joins."""
    gone = data.draw(st.sampled_from(sorted(members)))
    for node in NODES:
        before, after = owner(node, members), owner(node, members - {gone})
        assert before in (after, gone)


@given(MEMBERS, st.randoms())
def test_the_order_of_members_does_not_matter(members: set[str], random: Random) -> None:
    """Every reader computes the same owner."""
    shuffled = random.sample(sorted(members), len(members))
    assert [owner(node, shuffled) for node in NODES] == [owner(node, members) for node in NODES]


def test_nodes_are_shared_evenly() -> None:
    """Of 200 nodes, each of four members has about 50."""
    owned = [owner(node, ["a", "b", "c", "d"]) for node in NODES]
    assert all(30 <= owned.count(member) <= 70 for member in "abcd")
