"""The questions for a comparison: the same for the same seed, and never too wide."""

from collections import Counter
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlsplit

from moorage.integrations.placement.rows import Rows, all_encoded
from moorage.integrations.placement.sampling import PROVIDERS_MAX, Sample, Sizes
from moorage.wire.imports import ConsumerRow, InventoryRow, NameRow, ProviderRow

AT = datetime(2024, 1, 1, tzinfo=UTC)
STRANGER = "99999999-0000-4000-8000-000000000000"


def _rows(trees: int) -> Rows:
    providers = []
    for number in range(trees):
        for part, parent in enumerate((None, 0)):
            one = InventoryRow(total=16, created_at=AT, updated_at=AT)
            providers.append(
                ProviderRow(
                    uuid=_uuid(number, part),
                    name=f"p{number}-{part}",
                    generation=1,
                    parent=None if parent is None else _uuid(number, parent),
                    created_at=AT,
                    updated_at=AT,
                    inventories={"PCPU" if part else "VCPU": one},
                    traits=["HW_CPU_X86_AVX2"] if number % 2 else [],
                    aggregates=[_uuid(number % 3, 9)],
                )
            )
    consumer = ConsumerRow(
        uuid=_uuid(0, 5),
        generation=1,
        project="a b",
        user="ü",
        type=None,
        allocations={_uuid(0, 0): {"VCPU": 16}},
        created_at=AT,
        updated_at=AT,
    )
    names = [NameRow(name="CUSTOM_A", created_at=AT, updated_at=AT)]
    return Rows(
        traits=all_encoded(names),
        providers=all_encoded(providers),
        consumers=all_encoded([consumer]),
    )


def _uuid(number: int, part: int) -> str:
    return f"{number:08x}-{part:04x}-4000-8000-000000000000"


def test_the_same_seed_asks_the_same() -> None:
    """Another one asks something else."""
    rows = _rows(20)
    parts = [Sample(rows, [], Sizes(5, 5, 50, seed), 39).parts() for seed in (1, 1, 2)]
    assert parts[0] == parts[1]
    assert parts[0] != parts[2]


def test_everything_is_asked_about() -> None:
    """Also a provider that only the original has, and a project with odd characters."""
    parts = dict(Sample(_rows(3), [STRANGER], Sizes(), 39).parts())
    paths = [question.path for part in parts.values() for question in part]
    assert f"/resource_providers/{STRANGER}/inventories" in paths
    assert "/usages?project_id=a%20b&user_id=%C3%BC" in paths
    assert "/traits/CUSTOM_A" in paths
    assert len(paths) - len(parts["candidates"]) == len(set(paths) - {""}) - len(
        {question.path for question in parts["candidates"]}
    )


def test_queries_for_candidates_are_narrow() -> None:
    """Where more providers may serve a query, it is of one tree."""
    rows = _rows(PROVIDERS_MAX + 50)
    parts = dict(Sample(rows, [], Sizes(candidates=120), 39).parts())
    terms = Counter[str]()
    for question in parts["candidates"]:
        query = parse_qsl(urlsplit(question.path).query)
        terms.update(name for name, _ in query)
        wide = {"resources", "root_required"} >= {name for name, _ in query}
        assert not wide, question.path
    assert {"member_of", "required", "in_tree", "same_subtree", "group_policy"} <= terms.keys()


def test_old_versions_are_not_asked_for_one_of_several_traits() -> None:
    """That came with 1.39."""
    rows = _rows(20)
    for minor, some in ((38, False), (39, True)):
        parts = dict(Sample(rows, [], Sizes(candidates=200), minor).parts())
        assert any("required=in:" in one.path for one in parts["candidates"]) == some
