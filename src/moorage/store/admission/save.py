"""Saves admission's changes as rows, by set statements; deletes old leases and outcomes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import due_of, has_left_key
from moorage.core.clock import Instant
from moorage.core.limits import BOOKINGS_OVER_MAX
from moorage.store.admission.changes import change_rows
from moorage.store.admission.rows import (
    booking_need_rows,
    booking_row,
    due_row,
    lease_row,
    need_rows,
    outcome_row,
    pool_row,
    slot_row,
    template_row,
    trim_row,
)
from moorage.store.api import Plan, Query, Row, Write


@dataclass(slots=True)
class AdmissionPart:
    """Admission's part of a batch, for `store/batch.py`."""

    facts: Facts
    """With all changes applied: they hold the deadlines of leases that were only renewed."""
    changes: Changes
    needs_revision: ClassVar[bool] = True

    @property
    def is_published(self) -> bool:
        """Return whether followers are notified; not of signs of life."""
        return self.changes.is_published

    def writes(self) -> list[Write]:
        """Return no statements: everything may need the revision."""
        return []

    def stamp(self, epoch: int, revision: int) -> None:
        """Complete the tokens of new leases: their revision is known only now."""
        self.changes.stamp(epoch, revision)
        self.facts.apply(self.changes)

    def late_writes(self) -> list[Write]:
        """Return the statements that save the rows.

        No write is guarded, because `facts_load` holds the lock.
        """
        changes = self.changes
        changed = [lease for lease in changes.leases.values() if lease is not None]
        changed.sort(key=lambda lease: lease.id)
        left = [(lease.id, lease.key) for lease in changed if has_left_key(lease)]
        arrivals = changes.arrivals
        statements = [
            Write("arrivals_update", [] if arrivals is None else [(arrivals,)]),
            *_pool_writes(changes),
            *(_template_writes(changes) if changes.templates else ()),
            *_gone_writes(sorted(key for key, lease in changes.leases.items() if lease is None)),
            Write("lease_rekey", left),
            Write("lease_upsert", [lease_row(lease) for lease in changed]),
            Write("lease_need_upsert", sorted(row for one in changed for row in need_rows(one))),
            Write(
                "lease_need_trim",
                [trim_row(one) for one in changed if one.slots or one.alternatives],
            ),
            Write("lease_due_delete", [(lease.id,) for lease in changed if lease.state == "ended"]),
            Write("lease_due_upsert", _due_rows(self.facts, changes)),
            Write("outcome_insert", [outcome_row(outcome) for outcome in changes.outcomes]),
            *(_booking_writes(changes) if changes.bookings else ()),
        ]
        return [statement for statement in statements if statement.rows]

    def change_rows(self) -> Iterator[tuple[str, str, str | None]]:
        """Yield (kind, key, body) of every change; call `stamp` first."""
        return change_rows(self.changes)


def _pool_writes(changes: Changes) -> list[Write]:
    gone = [(name,) for name, pool in sorted(changes.pools.items()) if pool is None]
    slots = sorted(changes.slots.items(), key=lambda item: item[0])
    return [
        Write("pool_delete", gone),
        Write("outcome_delete_by_pool", gone),
        Write("pool_upsert", [pool_row(pool) for _, pool in sorted(changes.pools.items()) if pool]),
        Write("slot_delete", [key for key, slot in slots if slot is None]),
        Write("slot_upsert", [slot_row(slot) for _, slot in slots if slot is not None]),
    ]


def _template_writes(changes: Changes) -> list[Write]:
    templates = sorted(changes.templates.items())
    return [
        Write("template_delete", [(name,) for name, one in templates if one is None]),
        Write("template_upsert", [template_row(one) for _, one in templates if one is not None]),
    ]


def _booking_writes(changes: Changes) -> list[Write]:
    bookings = [one for _, one in sorted(changes.bookings.items())]
    written: dict[str, int] = {}
    for one in bookings:
        pool = one.needs[0].pool
        written[pool] = max(written.get(pool, 0), one.updated_at)
    surplus = [(pool, wall, BOOKINGS_OVER_MAX) for pool, wall in sorted(written.items())]
    return [
        Write("booking_upsert", [booking_row(one) for one in bookings]),
        Write("booking_need_delete", [(one.id,) for one in bookings]),
        Write("booking_need_insert", [row for one in bookings for row in booking_need_rows(one)]),
        Write("booking_needs_surplus", surplus),
        Write("bookings_surplus", surplus),
    ]


def _due_rows(facts: Facts, changes: Changes) -> list[Row]:
    """Return the `lease_due` rows of live leases that were changed, renewed or postponed."""
    rows = []
    for key in sorted(changes.leases.keys() | changes.heard.keys() | changes.postponed):
        lease = facts.leases.get(key)
        if lease is not None and lease.state != "ended":
            rows.append(due_row(key, lease.heard_until, due_of(lease, facts.timeline)))
    return rows


def _gone_writes(leases: list[str]) -> list[Write]:
    """Return the statements that delete leases; their needs go first, see `lease_need_delete`."""
    rows = [(lease,) for lease in leases]
    return [
        Write("lease_need_delete", rows),
        Write("lease_due_delete", rows),
        Write("lease_delete", rows),
    ]


def forget(ended_before: Instant, reported_before: Instant, leases_max: int) -> Plan[int]:
    """Delete at most `leases_max` leases that ended long ago, and outcomes and bookings of before.

    Returns the number of leases: while it is `leases_max`, call it again in another transaction.
    """
    _, found = yield [
        Query("admission_lock"),
        Query("leases_ended_before", (ended_before, leases_max)),
    ]
    gone = _gone_writes(sorted(row[0] for row in found)) if found else []
    over = [(reported_before,)]
    yield [
        *gone,
        Write("outcome_delete_before", over),
        Write("booking_needs_over", over),
        Write("bookings_over", over),
    ]
    return len(found)


def wipe_writes() -> list[Write]:
    """Return the statements that empty admission's tables; its clock and arrivals continue."""
    return [
        Write("pools_wipe", [()]),
        Write("templates_wipe", [()]),
        Write("slots_wipe", [()]),
        Write("leases_wipe", [()]),
        Write("lease_dues_wipe", [()]),
        Write("lease_needs_wipe", [()]),
        Write("outcomes_wipe", [()]),
        Write("bookings_wipe", [()]),
        Write("booking_needs_wipe", [()]),
    ]
