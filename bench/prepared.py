"""Writes a fleet to a database before the service starts, with the plans of the store.

To load a million hosts over HTTP takes most of an hour, and shows nothing that a smaller fleet does
not show.
"""

import itertools
import time
from collections.abc import Iterator, Mapping
from typing import Any

from bench.fleet import Host
from moorage.core.clock import Instant
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Inventory, Tags
from moorage.core.ledger.model import Provider as Row
from moorage.service.os_vocabulary import STANDARD_CLASSES, STANDARD_TRAITS
from moorage.store.api import Engine
from moorage.store.batch import batch_save
from moorage.store.ledger import save as ledger_save
from moorage.store.ledger.save import LedgerPart
from moorage.store.open import open_engine

HOSTS_AT_ONCE = 5_000
"""Hosts per transaction; the maximum of a bulk report, too."""


async def prepare(url: str, hosts: Iterator[Host]) -> None:
    """Write hosts to a database that no service uses."""
    engine = open_engine(url)
    try:
        while some := list(itertools.islice(hosts, HOSTS_AT_ONCE)):
            await _write(engine, some)
    finally:
        await engine.close()


async def _write(engine: Engine, hosts: list[Host]) -> None:
    """Write some hosts in one transaction, with the change rows for followers."""
    now = Instant(time.time_ns() // 1_000)
    changes = Changes()
    for host in hosts:
        root = ProviderId(host[0].uuid)
        for one in host:
            uuid = ProviderId(one.uuid)
            parent = None if one.parent is None else ProviderId(one.parent)
            generation = bool(one.inventories) + bool(one.traits) + bool(one.aggregates)
            changes.providers[uuid] = Row(uuid, one.name, generation, parent, root, now, now)
            changes.tags[uuid] = Tags(
                frozenset(one.traits), frozenset(map(AggregateId, one.aggregates)), now
            )
            for name, figures in one.inventories.items():
                changes.inventories[uuid, name] = _inventory(figures, now)
    before = ledger_save.before_of(Facts(STANDARD_CLASSES, STANDARD_TRAITS))
    async with engine.transaction() as transaction:
        await transaction.run(batch_save([LedgerPart(before, changes)], [], now))
        await transaction.commit()


def _inventory(figures: Mapping[str, float], now: Instant) -> Inventory:
    given: dict[str, Any] = {"created_at": now, "updated_at": now, **figures}
    return Inventory(**given)
