"""Which hosts wait for each other, by the units that they keep and need."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.integrations.provisioning.deadlock import WaitingHost, deadlocked

Units = Mapping[str, int]


def hosts(*pairs: tuple[Units, Units]) -> list[WaitingHost]:
    """Return hosts, named by their numbers, of what each host keeps and needs."""
    return [WaitingHost(str(number), has, needs) for number, (has, needs) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("limits", "pairs", "stuck"),
    [
        pytest.param({"p": 2}, [({"p": 1}, {"p": 1})] * 2, "01", id="one more unit of a pool"),
        pytest.param({"p": 3}, [({"p": 1}, {"p": 1})] * 2, "", id="one unit is free"),
        pytest.param(
            {"p": 1, "q": 1}, [({"p": 1}, {"q": 1}), ({"q": 1}, {"p": 1})], "01", id="crossed"
        ),
        pytest.param(
            {"p": 1, "q": 1}, [({"p": 1}, {"q": 1}), ({"q": 1}, {"p": 2})], "", id="above a limit"
        ),
        pytest.param({"p": 0}, [({"p": 1}, {"p": 1})] * 2, "", id="a paused pool"),
        pytest.param(
            {"p": 1, "q": 1},
            [({"r": 1}, {"p": 1, "q": 1}), ({"q": 1}, {"p": 1})],
            "01",
            id="the free unit is set aside for the first",
        ),
        pytest.param(
            {"p": 1, "q": 1},
            [({"q": 1}, {"p": 1}), ({"r": 1}, {"p": 1, "q": 1})],
            "",
            id="the free unit is for the first",
        ),
        pytest.param(
            {"p": 1, "q": 1},
            [({}, {"p": 1, "q": 1}), ({"q": 1}, {"p": 1})],
            "01",
            id="the free unit is set aside for one that keeps nothing",
        ),
    ],
)
def test_who_waits_for_whom(limits: Units, pairs: list[tuple[Units, Units]], stuck: str) -> None:
    """Hosts are stuck if each can only get units after another one of them."""
    assert "".join(one.uuid for one in deadlocked(hosts(*pairs), limits)) == stuck


POOLS = st.dictionaries(st.sampled_from("pqr"), st.integers(1, 2), max_size=3)


@given(
    st.fixed_dictionaries({pool: st.integers(0, 6) for pool in "pqr"}),
    st.lists(st.tuples(POOLS, POOLS.filter(bool)), max_size=6),
)
def test_a_line_that_is_played(limits: Units, pairs: list[tuple[Units, Units]]) -> None:
    """Claims are granted one after the other by the rule of the line, each time the first that can
    be, until none can: exactly those are stuck, but for those above a limit.
    """
    line = [
        one
        for one in hosts(*pairs)
        if all(units + one.has.get(pool, 0) <= limits[pool] for pool, units in one.needs.items())
    ]

    def can_be_granted(one: WaitingHost) -> bool:
        before = line[: line.index(one)]
        return all(
            units
            + sum(other.has.get(pool, 0) for other in line)
            + sum(other.needs.get(pool, 0) for other in before)
            <= limits[pool]
            for pool, units in one.needs.items()
        )

    while (found := next((one for one in line if can_be_granted(one)), None)) is not None:
        line.remove(found)
    assert deadlocked(hosts(*pairs), limits) == line
