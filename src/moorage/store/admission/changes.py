"""Admission's change rows: their kinds, how they are written, and how followers read them."""

from collections.abc import Iterable, Iterator
from typing import Any

from moorage.core.admission.booking_model import Booking
from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease, Pool, Slot, StartOutcome, Template
from moorage.core.ids import LeaseId
from moorage.store.admission.rows import lease_from_body, pool_from_body
from moorage.store.encoding import encode

KINDS: dict[str, Any] = {
    "pool_template": Template,
    "pool": Pool,
    "slot": Slot,
    "lease": Lease,
    "outcome": StartOutcome,
    "booking": Booking,
}
"""The kinds in the order in which a batch writes them, and the types of their values."""

FOLLOWED_KINDS = ("pool", "lease")
"""The kinds that followers in other processes receive."""


def change_rows(changes: Changes) -> Iterator[tuple[str, str, str | None]]:
    """Yield (kind, key, body) of every change, in a fixed order; None as body: it was deleted.

    Call it after `Changes.stamp`. A lease's body contains its token: show it only to the lease's
    owner and to operators.
    """
    for name, template in sorted(changes.templates.items()):
        yield "pool_template", name, _body(template)
    for name, pool in sorted(changes.pools.items()):
        yield "pool", name, _body(pool)
    for (name, slot_name), slot in sorted(changes.slots.items(), key=lambda item: item[0]):
        yield "slot", f"{name}/{slot_name}", _body(slot)
    for key, lease in sorted(changes.leases.items()):
        yield "lease", key, _body(lease)
    for outcome in changes.outcomes:
        yield "outcome", outcome.lease, encode(outcome)
    for booking in sorted(changes.bookings):
        yield "booking", booking, encode(changes.bookings[booking])


def changes_read(rows: Iterable[tuple[str, str, str | None]]) -> Changes:
    """Decode (kind, key, body) of change rows of the followed kinds.

    Raises ValueError (msgspec's ValidationError): a row is damaged.
    """
    changes = Changes()
    for kind, key, body in rows:
        if kind == "pool":
            changes.pools[key] = None if body is None else pool_from_body(body)
        else:
            lease = None if body is None else lease_from_body(body)
            changes.leases[LeaseId(key)] = lease
    return changes


def slot_key(key: str) -> tuple[str, str]:
    """Return (pool, slot) of a slot's change row; pool names may contain slashes, too."""
    pool, _, name = key.rpartition("/")
    return pool, name


def _body(value: object) -> str | None:
    return None if value is None else encode(value)
