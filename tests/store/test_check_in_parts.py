"""The checks keep only rows that may be wrong in memory; they find the same as with all rows."""

from random import Random
from typing import TypeVar

import pytest

from moorage.core.clock import Instant
from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger.model import Inventory, Provider, Withheld
from moorage.store import check
from moorage.store.api import Plan, Row, Stream
from moorage.store.encoding import encode
from moorage.store.ledger.rows import provider_from_row, provider_row

T = TypeVar("T")

UUIDS = [ProviderId(f"p{number}") for number in range(12)]


def some_row(random: Random, uuid: ProviderId) -> Row:
    """Return the row of a provider, which is often wrong."""
    parent = random.choice((None, None, None, *UUIDS, ProviderId("nobody")))
    root = uuid if random.random() < 0.8 else random.choice(UUIDS)
    why = Withheld("silent", random.choice(UUIDS)) if random.random() < 0.2 else None
    provider = Provider(
        *(uuid, f"name-{uuid}", random.choice((0, 0, 3, -1)), parent, root, Instant(0), Instant(0)),
        agent=AgentId("a") if random.random() < 0.1 else None,
        withheld=why,
    )
    held = {
        name: Inventory(
            8, offered=random.choice((None,) * 9 + (4,)), withheld=random.random() < 0.1
        )
        for name in ("VCPU", "DISK_GB")
        if random.random() < 0.7
    }
    return (uuid, *provider_row(provider), encode(held))


def answer(plan: Plan[T], rows: list[Row]) -> T:
    """Run a plan: its streams get these rows one at a time, its queries nothing."""
    statements = next(plan)
    while True:
        for one in statements:
            if isinstance(one, Stream):
                for row in rows:
                    one.take([row])
        try:
            statements = plan.send([[] for _ in statements])
        except StopIteration as stop:
            found: T = stop.value
            return found


@pytest.mark.parametrize("seed", range(200))
def test_nothing_is_overlooked(seed: int) -> None:
    """Trees and offers are found to be wrong wherever they are, in the same order."""
    random = Random(f"parts/{seed}")
    rows = [some_row(random, uuid) for uuid in UUIDS if random.random() < 0.9]
    held = {row[0]: provider_from_row(row) for row in rows}
    trees = check.tree_differences({uuid: provider for uuid, (provider, _) in held.items()})
    assert answer(check.content_plans(frozenset(), frozenset())[4], rows) == trees
    assert answer(check.offers_differences_load(), rows) == check.offers_differences({}, held)
