"""What is asked for and what is answered, as far as carrying a command needs it.

The words are those of `moorage.wire.admission`, which needs a newer Python; a test compares them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

PATIENCE_SECONDS = 30.0
"""How long a server keeps a place in line where no patience is named."""


class StrangeAnswerError(Exception):
    """What was answered is not what the native API says."""


class Wish(NamedTuple):
    """What to ask for; see `wire.admission.LeaseWanted`. Durations are in seconds."""

    needs: tuple[tuple[str, int], ...]
    """Pools and units."""
    ttl: float | None = None
    hold: float | None = None
    priority: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    patience: float = PATIENCE_SECONDS
    """How long the server keeps a place in line without hearing from us."""
    usual_ttl: float | None = None
    """The TTL where none is named, or the longest of the pools if that is shorter.

    What a key was used for does not change with the pool: `Leases.ask` finds it again.
    """

    def body(self, key: str) -> dict[str, Any]:
        """Return the request for one attempt, named by its idempotency key."""
        return {
            "needs": [{"pool": pool, "units": units} for pool, units in self.needs],
            "key": key,
            "ttl": self.usual_ttl if self.ttl is None else self.ttl,
            "hold": self.hold,
            "priority": self.priority,
            "labels": dict(self.labels),
            "patience": self.patience,
        }

    @property
    def pools(self) -> str:
        """The pools for people."""
        return ", ".join(
            pool if units == 1 else f"{pool} ({units} units)" for pool, units in self.needs
        )


class Waiting(NamedTuple):
    """Where a ticket stands; see `wire.admission.Waiting`."""

    position: int
    eta_seconds: tuple[float, float] | None
    reason: str
    overdue: bool = False


class Lease(NamedTuple):
    """A lease or ticket; see `wire.admission.Lease`. Times are as they are told."""

    id: str
    state: str
    token: str | None
    pools: tuple[str, ...]
    needs: tuple[tuple[str, int], ...]
    slots: dict[str, list[str]]
    ttl: float | None
    hold: float | None
    expires_at: str | None
    hold_until: str | None
    cause: str | None
    detail: str
    waiting: Waiting | None

    @property
    def slot_names(self) -> list[str]:
        """All slots it holds, in the order of its pools."""
        return [name for pool in self.pools for name in self.slots.get(pool, [])]

    @property
    def ends_at(self) -> str | None:
        """When it ends by itself, whichever comes first: its TTL, renewed no more, or its hold."""
        told = [at for at in (self.expires_at, self.hold_until) if at is not None]
        return min(told, key=_instant, default=None)

    @property
    def end(self) -> str:
        """Why it has ended, for people."""
        return f"{self.cause}: {self.detail}" if self.detail else str(self.cause)


def lease_of(told: Any) -> Lease:
    """Return what a decoded JSON value tells of a lease. Raises StrangeAnswerError."""
    try:
        waiting = told["waiting"]
        return Lease(
            id=str(told["id"]),
            state=str(told["state"]),
            token=told["token"],
            pools=tuple(str(need["pool"]) for need in told["needs"]),
            needs=tuple((str(need["pool"]), int(need["units"])) for need in told["needs"]),
            slots={str(pool): [*names] for pool, names in told["slots"].items()},
            ttl=_seconds(told["ttl"]),
            hold=_seconds(told["hold"]),
            expires_at=told["expires_at"],
            hold_until=told["hold_until"],
            cause=told["cause"],
            detail=str(told["detail"]),
            waiting=None if waiting is None else _waiting(waiting),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StrangeAnswerError(f"the answer is no lease: {error!r}") from error


def _instant(at: str) -> datetime:
    """Read a time as it is told; older Pythons know no Z."""
    return datetime.fromisoformat(at.replace("Z", "+00:00"))


def _seconds(value: Any) -> float | None:
    return None if value is None else float(value)


def _waiting(told: Any) -> Waiting:
    eta = told["eta_seconds"]
    return Waiting(
        position=int(told["position"]),
        eta_seconds=None if eta is None else (float(eta[0]), float(eta[1])),
        reason=str(told["reason"]),
        overdue=bool(told.get("overdue", False)),
    )
