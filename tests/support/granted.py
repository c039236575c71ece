"""Leases as the native API shows them, for tests that need no server."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from moorage.wire.admission import Lease, NeedWanted

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

GRANTED = Lease(
    id="lease-1",
    key="",
    owner="governor:hosts",
    state="granted",
    needs=[],
    slots={},
    labels={},
    priority=0,
    forced=False,
    ttl=None,
    hold=None,
    asked_at=AT,
    granted_at=AT,
    expires_at=None,
    hold_until=None,
    ended_at=None,
    cause=None,
    detail="",
    outcome=None,
    unheard=False,
    token=None,
    record={"begun": True, "sent": []},
    record_version=1,
    record_age=0.0,
    waiting=None,
)
"""A lease of a host whose work has begun."""


def granted(key: str, needs: dict[str, int], **others: Any) -> Lease:
    """Return the lease of a host: its key, and its units by pool."""
    wanted = [NeedWanted(pool=pool, units=units) for pool, units in needs.items()]
    return replace(GRANTED, key=key, needs=wanted, **others)
