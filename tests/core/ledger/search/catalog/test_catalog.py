"""Limits, starts, bounds, reuse of rows and comparison of catalogs."""

import pytest
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import CustomName, Inventory, Provider, Tags
from moorage.core.ledger.requests import CandidateQuery, Group, Start
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.catalog.large_changes import applying
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import Builder, group
from tests.core.ledger.search.whole import candidates, to_end


def flat(providers: int, chunk_rows: int) -> Catalog:
    """Return a catalog of root providers with 8 VCPU each."""
    catalog = Catalog(frozenset(), frozenset(), chunk_rows)
    catalog.apply(created(range(providers)))
    return catalog


def created(numbers: range) -> Changes:
    """Return the changes that create root providers with 8 VCPU each."""
    changes = Changes()
    for number in numbers:
        uuid = world.uuid_of(number)
        now = Instant(number)
        changes.providers[uuid] = Provider(uuid, f"name-{number}", 0, None, uuid, now, now)
        changes.inventories[uuid, "VCPU"] = Inventory(8)
    return changes


def hosts(catalog: Catalog, limit: int | None, start: Start) -> list[ProviderId]:
    """Return the hosts of the candidates for one VCPU, in order."""
    query = CandidateQuery((Group("", {"VCPU": 1}),), limit=limit)
    return [next(iter(c.allocations)) for c in candidates(catalog, query, start).candidates]


def test_start_matters_only_where_the_limit_cuts() -> None:
    """Without a limit that cuts, the order does not depend on the start."""
    catalog = flat(40, chunk_rows=16)
    everything = hosts(catalog, None, Start())
    assert len(everything) == 40
    for number in range(12):
        for start in (Start(number), Start(number, 7), Start(number, 0, number)):
            assert hosts(catalog, None, start) == everything
            assert hosts(catalog, 1000, start) == everything


def test_not_all_combinations_are_enumerated() -> None:
    """8 groups over 8 one-unit children have 16.7 million products, but 40,320 candidates."""
    builder = Builder()
    builder.add("host")
    for number in range(8):
        builder.add(f"fpga{number}", "host", FPGA=1)
    groups = [group(f"_{number}", FPGA=1) for number in range(8)]
    for policy in ("isolate", "none"):
        answer = builder.search(*groups, group_policy=policy)
        assert len(answer.candidates) == 40_320
        assert answer.exhausted
        assert len(builder.search(*groups, group_policy=policy, limit=10).candidates) == 10


def test_hopeless_combinations_end_at_once() -> None:
    """12 groups over 11 one-unit children have no candidate, which is found without trial."""
    builder = Builder()
    builder.add("host")
    for number in range(11):
        builder.add(f"fpga{number}", "host", FPGA=1)
    groups = [group(f"_{number}", FPGA=1) for number in range(12)]
    for policy in ("isolate", "none"):
        answer = builder.search(*groups, group_policy=policy)
        assert (answer.candidates, answer.exhausted) == ([], True)


def test_search_is_bounded() -> None:
    """A search stops at its bound with an answer that is not exhausted."""
    builder = Builder()
    builder.add("host")
    for number in range(8):
        builder.add(f"fpga{number}", "host", FPGA=1)
    groups = [group(f"_{number}", FPGA=1) for number in range(8)]
    query = CandidateQuery(tuple(groups), group_policy="isolate")
    answer = candidates(builder.catalog, query, budget=Budget(whole=1000))
    assert 0 < len(answer.candidates) < 1000
    assert not answer.exhausted


def test_rows_are_reused() -> None:
    """Repeated creation and deletion neither adds chunks nor leaves columns."""
    catalog = flat(40, chunk_rows=16)
    chunks = len(catalog.chunks)
    for _ in range(10):
        used = Inventory(8, used=1)
        catalog.apply(Changes(inventories={(uuid, "VCPU"): used for uuid in catalog.places}))
        gone = Changes(providers=dict.fromkeys(catalog.places))
        catalog.apply(gone)
        assert len(catalog) == 0
        assert not any(chunk.columns for chunk in catalog.chunks)
        catalog.apply(created(range(40)))
        assert len(hosts(catalog, None, Start())) == 40
    assert len(catalog.chunks) == chunks


def test_deleted_and_created_again_in_one_batch() -> None:
    """A provider that a batch deletes and creates again has nothing of the old one."""
    catalog = flat(1, chunk_rows=16)
    uuid = world.uuid_of(0)
    catalog.apply(Changes(tags={uuid: Tags(frozenset({"CUSTOM_A"}))}))
    provider = Provider(uuid, "again", 0, None, uuid, Instant(99), Instant(99))
    catalog.apply(Changes(providers={uuid: provider}))
    record = catalog.record(uuid)
    assert record is not None
    assert record.inventories == {}
    assert not catalog.trait_in_use("CUSTOM_A")
    assert (catalog.named("again"), catalog.named("name-0")) == (uuid, None)


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_root_created_again_keeps_its_children(in_parts: bool) -> None:
    """A root that is deleted and created again in one batch keeps the child that is put back."""

    def family(root_made: int, *, anew: int) -> Changes:
        root, child, now = world.uuid_of(0), world.uuid_of(1), Instant(root_made)
        changes = created(range(2, 2 + anew))
        changes.providers[root] = Provider(root, "root", 0, None, root, now, now)
        changes.providers[child] = Provider(child, "child", 0, root, root, Instant(1), now)
        changes.inventories[child, "VCPU"] = Inventory(8)
        return changes

    catalog, other = (Catalog(frozenset(), frozenset(), 4) for _ in range(2))
    catalog.apply(family(0, anew=0))
    again = family(99, anew=9)
    if in_parts:
        to_end(applying(catalog, again, 1))
    else:
        catalog.apply(again)
    other.apply(again)
    assert catalog.differences(other) == []


def test_unknown_root_is_refused() -> None:
    """A provider without its root means corrupt rows, so an error is raised."""
    now = Instant(0)
    uuid, root = world.uuid_of(1), world.uuid_of(2)
    with pytest.raises(LookupError, match=root):
        flat(1, 16).apply(
            Changes(providers={uuid: Provider(uuid, "orphan", 0, root, root, now, now)})
        )


def test_vocabulary() -> None:
    """Standard names are fixed, custom ones are created and deleted by changes."""
    catalog = Catalog(frozenset({"VCPU"}), frozenset({"HW_CPU_X86_AVX"}))
    custom_name = CustomName("CUSTOM_X", Instant(1), Instant(1))
    assert catalog.has_class("VCPU") and not catalog.has_class("CUSTOM_X")
    assert catalog.has_trait("HW_CPU_X86_AVX") and not catalog.has_trait("CUSTOM_X")
    catalog.apply(Changes(classes={"CUSTOM_X": custom_name}, traits={"CUSTOM_X": custom_name}))
    assert catalog.has_class("CUSTOM_X") and catalog.has_trait("CUSTOM_X")
    catalog.apply(Changes(classes={"CUSTOM_X": None}, traits={"CUSTOM_X": None}))
    assert not catalog.has_class("CUSTOM_X") and not catalog.has_trait("CUSTOM_X")


def test_children_and_trees() -> None:
    """`children_of` returns direct children, `tree_of` all providers with the same root."""
    builder = Builder()
    builder.add("host")
    builder.add("node", "host")
    builder.add("nic", "node")
    assert builder.catalog.children_of(ProviderId("host")) == ["node"]
    assert set(builder.catalog.tree_of(ProviderId("nic"))) == {"host", "node", "nic"}
    assert builder.catalog.tree_of(ProviderId("nobody")) == []
    assert builder.catalog.record(ProviderId("nobody")) is None


def test_differences_are_found() -> None:
    """`differences` finds every kind of difference, and none between equal catalogs."""
    uuid = world.uuid_of(0)
    now = Instant(0)
    planted = [
        Changes(inventories={(uuid, "VCPU"): Inventory(8, used=1)}),
        Changes(inventories={(uuid, "VCPU"): None}),
        Changes(tags={uuid: Tags(frozenset({"CUSTOM_A"}))}),
        Changes(providers={uuid: Provider(uuid, "name-0", 1, None, uuid, now, now)}),
        Changes(providers={uuid: None}),
        Changes(traits={"CUSTOM_A": CustomName("CUSTOM_A", now, now)}),
        created(range(2, 3)),
    ]
    assert flat(2, 16).differences(flat(2, 4)) == []
    for changes in planted:
        other = flat(2, 16)
        other.apply(changes)
        assert flat(2, 16).differences(other) != []


def test_differences_look_into_the_columns() -> None:
    """A column that contradicts its record is found, too."""
    catalog = flat(2, 16)
    catalog.chunks[0].columns["VCPU"].used[1] = 7
    assert any("figures of VCPU" in line for line in catalog.differences(flat(2, 16)))


def test_records_are_immutable() -> None:
    """A record is immutable: later changes make a new one."""
    catalog = flat(1, 16)
    uuid = world.uuid_of(0)
    before = catalog.record(uuid)
    assert before is not None
    copy = replace(before, inventories=dict(before.inventories))
    catalog.apply(Changes(inventories={(uuid, "VCPU"): Inventory(8, used=1)}))
    after = catalog.record(uuid)
    assert before == copy
    assert after is not None and after.version > before.version
