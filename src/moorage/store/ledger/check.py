"""Checks the records of reshapes: an undo years later relies on them.

Each must decode, have the digest of its effects, and the numbers of what it changed. Undoing and
undone reshapes name each other. The generations that it reached are not beyond the present ones,
unless the ledger was imported since, with the generations of another one. At most `FOUND_MAX`
differences are reported.

It reads a few records at a time, and keeps none: there may be one for each boot of each machine.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import MsgspecError

from moorage.core.ids import ConsumerId
from moorage.core.ledger.import_mark import MARK_TARGET
from moorage.core.ledger.reshape_records import ReshapeRecord
from moorage.core.ledger.reshaping.effects import (
    AllocationsSet,
    ProviderDeleted,
    Summary,
    digest_of,
)
from moorage.core.ledger.reshaping.inverse import Inverse
from moorage.core.ledger.reshaping.plan import Generations
from moorage.store.api import Plan, Query, Row
from moorage.store.differences import Found, collected
from moorage.store.encoding import key_set
from moorage.store.ledger.reshapes import ReshapeRow, records_load

PAGE = 4
"""Records that are in memory at a time; each may have several megabytes."""

_INVERSE = msgspec.json.Decoder(Inverse)
_SUMMARY = msgspec.json.Decoder(Summary)
_GENERATIONS = msgspec.json.Decoder(Generations)


def differences_load() -> Plan[list[str]]:
    """Return the differences between records and what they say; empty if there are none.

    Use `read_aside`: it reads everything.
    """
    return (yield from collected("reshapes", _compared))


def _compared(found: Found) -> Plan[None]:
    (((imported,),),) = yield [Query("audit_last_of", (MARK_TARGET,))]
    after: Row = (-1, "")
    while True:
        (rows,) = yield [Query("reshapes_snapshot", (*after, PAGE))]
        if not rows:
            return
        records = []
        for row in rows:
            *record, summary, generations, inverse = row
            one = ReshapeRow(ReshapeRecord(*record), summary, generations, inverse)
            records.append(one.record)
            reached = _GENERATIONS_NONE
            try:
                reached = _GENERATIONS.decode(one.generations)
                _SUMMARY.decode(one.summary)
                found.tell(_contents(one.record, reached, _INVERSE.decode(one.inverse)))
            except MsgspecError as error:
                found.tell([f"reshape {one.record.id}: it cannot be read: {error}"])
            if reached.providers and one.record.at > (imported or 0):
                asked = (key_set(reached.providers),)
                (present,) = yield [Query("provider_generations_load", asked)]
                found.tell(_beyond(one.record, reached, present))
            after = (one.record.at, one.record.id)
        named = {link for one in records for link in (one.undoes, one.undone_by) if link}
        if named:
            linked = yield from records_load(named)
            found.tell(_links(records, linked))


_GENERATIONS_NONE = Generations()


def _contents(record: ReshapeRecord, reached: Generations, inverse: Inverse) -> Iterator[str]:
    """Compare a record with what it keeps."""
    title = f"reshape {record.id}"
    if (digest := digest_of(inverse.effects)) != record.digest:
        yield f"{title}: its digest is {record.digest}, that of its effects is {digest}"
    gone = sum(isinstance(one, ProviderDeleted) for one in inverse.effects)
    changed = len(reached.providers) + gone
    if record.providers != changed:
        yield f"{title}: providers is {record.providers}, it has changed {changed}"
    if record.consumers != len(reached.consumers):
        yield f"{title}: consumers is {record.consumers}, it has changed {len(reached.consumers)}"
    allocated = {one.consumer for one in inverse.effects if isinstance(one, AllocationsSet)}
    removed = {uuid for uuid, generation in reached.consumers.items() if generation is None}
    yield from _named(f"{title}: the generation of consumer", reached.consumers, allocated)
    yield from _named(f"{title}: the owner of consumer", inverse.owners, removed)
    yield from _named(f"{title}: the lease of consumer", inverse.leases, set(inverse.owners))
    for uuid in sorted(removed - inverse.owners.keys()):
        yield f"{title}: it has removed consumer {uuid}, and does not know its owner"


def _named(
    title: str, named: Mapping[ConsumerId, object], expected: set[ConsumerId]
) -> Iterator[str]:
    for uuid in sorted(named.keys() - expected):
        yield f"{title} {uuid} is kept, but it has not changed so"


def _beyond(record: ReshapeRecord, reached: Generations, present: list[Row]) -> Iterator[str]:
    """Yield providers that are older than the reshape, and have not the generation that it set."""
    for uuid, generation, created_at in present:
        if created_at < record.at and generation < reached.providers[uuid]:
            yield (
                f"reshape {record.id}: provider {uuid} has generation {generation}, it got"
                f" {reached.providers[uuid]} then"
            )


def _links(records: Sequence[ReshapeRecord], linked: Mapping[str, ReshapeRecord]) -> Iterator[str]:
    """Yield reshapes that do not name each other. Older records may have been forgotten.

    `linked` are those that `records` name.
    """
    for one in records:
        undone = None if one.undoes is None else linked.get(one.undoes)
        if undone is not None and undone.undone_by != one.id:
            yield f"reshape {one.id}: it undoes {undone.id}, which {undone.undone_by} has undone"
        undoing = None if one.undone_by is None else linked.get(one.undone_by)
        if one.undone_by is not None and (undoing is None or undoing.undoes != one.id):
            what = "does not exist" if undoing is None else f"undoes {undoing.undoes}"
            yield f"reshape {one.id}: undone by {one.undone_by}, which {what}"
