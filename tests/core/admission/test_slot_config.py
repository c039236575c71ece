"""A Boskos configuration becomes pools and slots; the cases are those of Boskos' own tests."""

from copy import deepcopy
from typing import NamedTuple

import pytest
from msgspec import structs

from moorage.core.admission.facts import Facts
from moorage.core.admission.slot_config import ResourceType, SlotConfig, sync
from moorage.core.clock import Instant
from tests.core.admission.boskos_pools import (
    NOW,
    START,
    dynamic,
    facts_with,
    grows,
    growths_of,
    new_names,
    slot,
    slot_rows,
    static,
)

SlotRow = tuple[str, str, str, str, bool]


class Case(NamedTuple):
    """The facts before, the configuration, and the expected slots and growths after."""

    before: Facts
    config: list[ResourceType]
    slots: list[SlotRow]
    growths: dict[str, tuple[int, int]]


def kept(name: str, pool: str, state: str = "free", owner: str = "") -> SlotRow:
    """Return an unchanged slot."""
    return (name, pool, state, owner, False)


def made(name: str, pool: str, state: str = "free", owner: str = "") -> SlotRow:
    """Return a slot that is new or was updated at `NOW`."""
    return (name, pool, state, owner, True)


LATER = Instant(NOW + 3_600_000_000)

CASES = {
    "mason's resources become dynamic": Case(
        facts_with(slot("res-1", "t"), slot("m-1", "mason"), slot("m-2", "mason")),
        [static("t", "res-1"), dynamic("mason", 2, 4)],
        [kept("m-1", "mason"), kept("m-2", "mason"), kept("res-1", "t")],
        {"mason": (2, 4)},
    ),
    "empty": Case(facts_with(), [], [], {}),
    "append": Case(
        facts_with(slot("res-1", "t")),
        [static("t", "res-1", "res-2"), dynamic("dt", 1, 2)],
        [made("new-1", "dt"), kept("res-1", "t"), made("res-2", "t")],
        {"dt": (1, 2)},
    ),
    "no change": Case(
        facts_with(slot("res-1", "t"), slot("d-1", "dt"), dt=grows(1, 2)),
        [static("t", "res-1"), dynamic("dt", 1, 2)],
        [kept("d-1", "dt"), kept("res-1", "t")],
        {"dt": (1, 2)},
    ),
    "delete: a dynamic type stays until its slots are gone": Case(
        facts_with(slot("res", "t"), slot("d-1", "dt"), dt=grows(1, 2)),
        [],
        [made("d-1", "dt", "toBeDeleted")],
        {"dt": (0, 0)},
    ),
    "delete: a dynamic type without slots goes": Case(facts_with(dt=grows(1, 2)), [], [], {}),
    "delete busy": Case(
        facts_with(slot("res", "t", "busy", "o"), slot("d-1", "dt", "busy", "o"), dt=grows(1, 2)),
        [],
        [kept("d-1", "dt", "busy", "o"), kept("res", "t", "busy", "o")],
        {"dt": (0, 0)},
    ),
    "append and delete": Case(
        facts_with(
            slot("res-1", "t", "tombstone"),
            slot("d-1", "dt", "toBeDeleted"),
            slot("d-2", "dt"),
            slot("d-3", "dt"),
            dt=grows(1, 3),
        ),
        [static("t", "res-2"), dynamic("dt", 1, 2), dynamic("dt2", 1, 2)],
        [
            kept("d-1", "dt", "toBeDeleted"),
            kept("d-2", "dt"),
            kept("d-3", "dt"),
            made("new-1", "dt2"),
            made("res-2", "t"),
        ],
        {"dt": (1, 2), "dt2": (1, 2)},
    ),
    "append and delete busy": Case(
        facts_with(
            slot("res-1", "t", "busy", "o"),
            slot("d-1", "dt"),
            slot("d-2", "dt", "tombstone"),
            slot("d-3", "dt", "busy", "o"),
            dt=grows(1, 3),
        ),
        [static("t", "res-2"), dynamic("dt", 1, 2), dynamic("dt2", 1, 2)],
        [
            kept("d-1", "dt"),
            kept("d-3", "dt", "busy", "o"),
            made("new-1", "dt2"),
            kept("res-1", "t", "busy", "o"),
            made("res-2", "t"),
        ],
        {"dt": (1, 2), "dt2": (1, 2)},
    ),
    "append and delete of two types": Case(
        facts_with(slot("res-1", "t", "tombstone")),
        [static("t", "res-2"), static("t2", "res-3")],
        [made("res-2", "t"), made("res-3", "t2")],
        {},
    ),
    "delete expired": Case(
        facts_with(
            slot("d-1", "dt", expires=START),
            slot("d-2", "dt"),
            slot("d-3", "dt", "tombstone", expires=START),
            slot("d-4", "dt"),
            dt=grows(2, 4),
        ),
        [dynamic("dt", 2, 4)],
        [made("d-1", "dt", "toBeDeleted"), kept("d-2", "dt"), kept("d-4", "dt")],
        {"dt": (2, 4)},
    ),
    "expired and busy stays": Case(
        facts_with(
            slot("d-1", "dt", "tombstone", expires=START),
            slot("d-2", "dt"),
            slot("d-3", "dt", "busy", "o", expires=START),
            slot("d-4", "dt", "busy", "o"),
            dt=grows(1, 4),
        ),
        [dynamic("dt", 1, 3)],
        [kept("d-2", "dt"), kept("d-3", "dt", "busy", "o"), kept("d-4", "dt", "busy", "o")],
        {"dt": (1, 3)},
    ),
    "expired, and made anew up to the least": Case(
        facts_with(
            slot("d-1", "dt", expires=START),
            slot("d-2", "dt"),
            slot("d-3", "dt", "tombstone", expires=START),
            slot("d-4", "dt"),
            dt=grows(4, 6),
        ),
        [dynamic("dt", 4, 6)],
        [
            made("d-1", "dt", "toBeDeleted"),
            kept("d-2", "dt"),
            kept("d-4", "dt"),
            made("new-1", "dt"),
        ],
        {"dt": (4, 6)},
    ),
    "a lower maximum while some are being deleted": Case(
        facts_with(
            slot("d-1", "dt"),
            slot("d-2", "dt"),
            slot("d-3", "dt"),
            slot("d-4", "dt", "toBeDeleted"),
            slot("d-5", "dt", "tombstone"),
            dt=grows(1, 6),
        ),
        [dynamic("dt", 1, 1)],
        [
            kept("d-1", "dt"),
            made("d-2", "dt", "toBeDeleted"),
            made("d-3", "dt", "toBeDeleted"),
            kept("d-4", "dt", "toBeDeleted"),
        ],
        {"dt": (1, 1)},
    ),
    "a higher minimum while some are being deleted": Case(
        facts_with(
            slot("d-1", "dt"),
            slot("d-2", "dt", "toBeDeleted"),
            slot("d-3", "dt", "toBeDeleted"),
            slot("d-4", "dt", "tombstone"),
            dt=grows(1, 6),
        ),
        [dynamic("dt", 4, 6)],
        [
            kept("d-1", "dt"),
            kept("d-2", "dt", "toBeDeleted"),
            kept("d-3", "dt", "toBeDeleted"),
            made("new-1", "dt"),
        ],
        {"dt": (4, 6)},
    ),
    "a dynamic type adopts static names": Case(
        facts_with(slot("r-0", "r"), slot("r-1", "r"), slot("r-2", "r")),
        [dynamic("r", 5, 5)],
        [
            made("new-1", "r"),
            made("new-2", "r"),
            kept("r-0", "r"),
            kept("r-1", "r"),
            kept("r-2", "r"),
        ],
        {"r": (5, 5)},
    ),
    "and back to static": Case(
        facts_with(
            slot("r-0", "r"), slot("r-1", "r"), slot("x-0", "r"), slot("x-1", "r"), r=grows(4, 4)
        ),
        [static("r", "r-0", "r-1")],
        [
            kept("r-0", "r"),
            kept("r-1", "r"),
            made("x-0", "r", "toBeDeleted"),
            made("x-1", "r", "toBeDeleted"),
        ],
        {"r": (0, 0)},
    ),
    "names move over types": Case(
        facts_with(slot("r-0", "t0"), slot("r-1", "t0"), slot("s-0", "t1")),
        [static("t0", "r-0"), static("t1", "r-1", "s-0")],
        [kept("r-0", "t0"), made("r-1", "t1"), kept("s-0", "t1")],
        {},
    ),
}

UPDATES = {
    "empty": Case(facts_with(), [], [], {}),
    "nothing to do": Case(
        facts_with(slot("d-1", "dt"), slot("t-1", "t"), dt=grows(1, 4)),
        [dynamic("dt", 1, 4), static("t", "t-1")],
        [kept("d-1", "dt"), kept("t-1", "t")],
        {"dt": (1, 4)},
    ),
    "expired, if nobody holds it": Case(
        facts_with(
            slot("d-1", "dt", expires=LATER),
            slot("d-2", "dt", expires=START),
            slot("d-3", "dt", "busy", "o", expires=START),
            slot("d-4", "dt", "toBeDeleted", expires=START),
            dt=grows(1, 4),
        ),
        [dynamic("dt", 1, 4)],
        [
            kept("d-1", "dt"),
            made("d-2", "dt", "toBeDeleted"),
            kept("d-3", "dt", "busy", "o"),
            kept("d-4", "dt", "toBeDeleted"),
        ],
        {"dt": (1, 4)},
    ),
    "none, and none to make": Case(
        facts_with(dt=grows(0, 4)), [dynamic("dt", 0, 4)], [], {"dt": (0, 4)}
    ),
    "none, and some to make": Case(
        facts_with(dt=grows(2, 4)),
        [dynamic("dt", 2, 4)],
        [made("new-1", "dt"), made("new-2", "dt")],
        {"dt": (2, 4)},
    ),
    "too many": Case(
        facts_with(
            slot("d-1", "dt"), slot("d-2", "dt"), slot("d-4", "dt", "busy", "o"), dt=grows(1, 2)
        ),
        [dynamic("dt", 1, 2)],
        [kept("d-1", "dt"), made("d-2", "dt", "toBeDeleted"), kept("d-4", "dt", "busy", "o")],
        {"dt": (1, 2)},
    ),
    "a tombstone is replaced": Case(
        facts_with(
            slot("d-1", "dt"),
            slot("d-2", "dt", "busy", "o"),
            slot("d-3", "dt", "toBeDeleted"),
            slot("d-4", "dt", "tombstone"),
            dt=grows(4, 8),
        ),
        [dynamic("dt", 4, 8)],
        [
            kept("d-1", "dt"),
            kept("d-2", "dt", "busy", "o"),
            kept("d-3", "dt", "toBeDeleted"),
            made("new-1", "dt"),
        ],
        {"dt": (4, 8)},
    ),
    "more busy than the most": Case(
        facts_with(
            slot("d-1", "dt"),
            slot("d-2", "dt", "busy", "o"),
            slot("d-3", "dt", "busy", "o"),
            slot("d-4", "dt", "busy", "o"),
            dt=grows(1, 2),
        ),
        [dynamic("dt", 1, 2)],
        [
            made("d-1", "dt", "toBeDeleted"),
            kept("d-2", "dt", "busy", "o"),
            kept("d-3", "dt", "busy", "o"),
            kept("d-4", "dt", "busy", "o"),
        ],
        {"dt": (1, 2)},
    ),
    "all free ones of a type that is removed": Case(
        facts_with(
            slot("d-1", "dt"),
            slot("d-2", "dt"),
            slot("d-3", "dt", "tombstone"),
            slot("d-4", "dt", "busy", "o"),
            dt=grows(0, 0),
        ),
        [],
        [
            made("d-1", "dt", "toBeDeleted"),
            made("d-2", "dt", "toBeDeleted"),
            kept("d-4", "dt", "busy", "o"),
        ],
        {"dt": (0, 0)},
    ),
    "a removed type without slots": Case(facts_with(dt=grows(0, 0)), [], [], {}),
    "a removed type with nothing but tombstones": Case(
        facts_with(slot("d-1", "dt", "tombstone"), slot("d-3", "dt", "tombstone"), dt=grows(0, 0)),
        [],
        [],
        {},
    ),
}


def sync_case(case: Case) -> tuple[Facts, tuple[str, ...]]:
    """Return the facts after a sync, and its problems."""
    facts = deepcopy(case.before)
    changes, problems = sync(facts, NOW, SlotConfig(tuple(case.config)), new_names())
    facts.apply(changes)
    return facts, problems


@pytest.mark.parametrize("name", CASES)
def test_sync(name: str) -> None:
    """Slots without an owner and growing pools become what the configuration describes."""
    facts, problems = sync_case(CASES[name])
    assert (slot_rows(facts), growths_of(facts)) == (CASES[name].slots, CASES[name].growths)
    assert problems == ()


@pytest.mark.parametrize("name", UPDATES)
def test_growing_pools(name: str) -> None:
    """Missing slots of a growing pool are created, and superfluous ones marked for deletion."""
    facts, problems = sync_case(UPDATES[name])
    assert (slot_rows(facts), growths_of(facts)) == (UPDATES[name].slots, UPDATES[name].growths)
    assert problems == ()


@pytest.mark.parametrize("name", [*CASES, *UPDATES])
def test_a_second_sync_changes_nothing(name: str) -> None:
    """A second sync with the same configuration changes nothing."""
    case = (CASES | UPDATES)[name]
    facts, _ = sync_case(case)
    changes, _ = sync(facts, NOW, SlotConfig(tuple(case.config)), new_names())
    assert not changes


def test_a_name_that_moves_while_owned() -> None:
    """An owned slot that moves to another type stays until its release, and is reported."""
    facts = facts_with(slot("a", "t0", "leased", "o"))
    config = [static("t0", "b"), static("t1", "a")]
    facts, problems = sync_case(Case(facts, config, [], {}))
    assert slot_rows(facts) == [kept("a", "t0", "leased", "o"), made("b", "t0")]
    assert problems == ("a is still held in t0; it moves to t1 later",)


def test_empty_pools_are_deleted() -> None:
    """The pool of a type that was removed from the configuration is deleted with its last slot."""
    facts, _ = sync_case(
        Case(facts_with(slot("a", "t0"), slot("b", "t1")), [static("t1", "b")], [], {})
    )
    assert set(facts.pools) == {"t1"}


def test_a_pool_with_tickets_stays() -> None:
    """A pool with waiting tickets is not deleted."""
    facts = facts_with(slot("a", "t0"))
    facts.pools["t0"] = structs.replace(facts.pools["t0"], waiting=1)
    facts, _ = sync_case(Case(facts, [], [], {}))
    assert set(facts.pools) == {"t0"} and slot_rows(facts) == []
