"""The requests and answers that `moorage run` needs.

The names are those of `moorage.wire.admission`, whose dataclasses take a third as long to make as
all of `moorage run` to start; a test compares them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from moorage.client.run.clock import instant_of, second_of
from moorage.client.run.labels import joined
from moorage.client.run.printing import misfit_text

PATIENCE_SECONDS = 30.0
"""How long a server keeps a place in line if the request sets no patience."""


PATIENCE_SECONDS_MAX = 3600.0
"""The server's limit."""

CAUSE_LENGTH_MAX = 64
"""Characters in the cause of an outcome: the server's limit."""


class StrangeAnswerError(Exception):
    """The answer does not conform to the native API."""


class Need(NamedTuple):
    """Units of one pool in an alternative, and the labels that its slots must have."""

    pool: str
    units: int
    labels: tuple[tuple[str, str], ...] = ()

    def body(self) -> dict[str, Any]:
        """Return it as a request has it."""
        need = {"pool": self.pool, "units": self.units}
        # An older server does not know labels, and refuses what it does not know.
        return need if not self.labels else {**need, "labels": dict(self.labels)}

    def __str__(self) -> str:
        """Return it as text for people."""
        said = [f"{self.units} units"] if self.units != 1 else []
        said += [f"{name}={value}" for name, value in self.labels]
        return f"{self.pool} ({', '.join(said)})" if said else self.pool


Needs = tuple[Need, ...]  # of one alternative: all of them, or none


class LeaseRequest(NamedTuple):
    """A request for a lease; see `wire.admission.LeaseWanted`. Durations are in seconds."""

    needs: tuple[tuple[str, int], ...]
    """Pools and units."""
    ttl: float | None = None
    hold: float | None = None
    priority: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    about: tuple[tuple[str, str], ...] = ()
    """More labels, which say where the request comes from; they do not make it another one."""
    patience: float = PATIENCE_SECONDS
    """How long the server keeps a place in line without a poll."""
    usual_ttl: float | None = None
    """The TTL if `ttl` is None; `Leases.ask` shortens it to the longest that the pools permit.

    A key stays bound to the TTL of its first request: `Leases.ask` tries both TTLs.
    """
    slot_labels: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """Labels that the slots must have, by pool."""
    group: str = ""
    """Only its newest request waits; empty: none."""
    cancel_running: bool = False
    """Also ask the holders of leases of the group to stop."""
    standing: bool = False
    """The key stands for more than one attempt. Between them the ticket keeps its place, but is not
    granted (`pull`), and after the lease has ended, the key gets a new one (`reopen`).
    """
    any_of: tuple[Needs, ...] = ()
    """Alternatives: one of them is granted, together with all of `needs`."""
    in_order: bool = False
    """The first alternative that is free, otherwise the least loaded one."""
    preemptible: float | None = None
    """The grace (seconds) of a holder who may be asked to stop for other tickets."""
    booking: str | None = None
    """The id of the booking whose units are wanted."""
    borrow: float | None = None
    """The shortest hold that will do, if a booking needs the units sooner."""

    def body(self, key: str) -> dict[str, Any]:
        """Return the request body of one attempt, identified by its idempotency key."""
        return {
            "needs": [need.body() for need in self._common],
            "key": key,
            "ttl": self.usual_ttl if self.ttl is None else self.ttl,
            "hold": self.hold,
            "priority": self.priority,
            "labels": joined(dict(self.about), dict(self.labels)),
            "patience": self.patience,
            **({"pull": True, "reopen": True} if self.standing else {}),
            **({"supersede": self._supersede()} if self.group else {}),
            **({} if self.preemptible is None else {"preemptible": self.preemptible}),
            **self._choice(),
            **({} if self.booking is None else {"booking": self.booking}),
            **({} if self.borrow is None else {"borrow": self.borrow}),
        }

    @property
    def pools(self) -> str:
        """The pools, as text for people."""
        said = ", ".join(map(str, self._common))
        if not self.any_of:
            return said
        names = ", ".join(" with ".join(map(str, needs)) for needs in self.any_of)
        return f"{said} and any of {names}" if said else f"any of {names}"

    @property
    def alternatives(self) -> list[dict[str, int]]:
        """The units by pool of each alternative with the common needs; of most requests one."""
        common = dict(self.needs)
        if not self.any_of:
            return [common]
        return [{**common, **{need.pool: need.units for need in one}} for one in self.any_of]

    @property
    def pool_names(self) -> set[str]:
        """All pools that it names."""
        return {pool for needs in self.alternatives for pool in needs}

    @property
    def may_be_stopped(self) -> bool:
        """Whether the server may ask its holder to stop."""
        return bool(self.group) or self.preemptible is not None

    @property
    def _common(self) -> list[Need]:
        labels = dict(self.slot_labels)
        return [Need(pool, units, labels.get(pool, ())) for pool, units in self.needs]

    def _supersede(self) -> dict[str, Any]:
        return {"group": self.group, "cancel_running": self.cancel_running}

    def _choice(self) -> dict[str, Any]:
        """Return the members that an older server does not know, if they are needed."""
        if not self.any_of:
            return {}
        any_of = [[need.body() for need in needs] for needs in self.any_of]
        return {"any_of": any_of, **({"choose": "order"} if self.in_order else {})}


def patience_for(silence: float) -> float:
    """Return how long the server must keep the place of a client that tries for `silence`."""
    return min(silence + PATIENCE_SECONDS, PATIENCE_SECONDS_MAX)


class Waiting(NamedTuple):
    """The standing of a ticket in its line; see `wire.admission.Waiting`."""

    position: int
    eta_seconds: tuple[float, float] | None
    reason: str
    overdue: bool = False
    code: str = ""


class Lease(NamedTuple):
    """A lease or ticket; see `wire.admission.Lease`. Times are text, as in the answer."""

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
    owner: str = ""
    labels: dict[str, str] = {}  # noqa: RUF012 # it is never changed
    asked_at: str = ""
    superseded_by: str | None = None
    stop_until: str | None = None
    preempted_by: str | None = None
    granted_at: str | None = None

    @property
    def slot_names(self) -> list[str]:
        """All its slots, in the order of its pools."""
        return [name for pool in self.pools for name in self.slots.get(pool, [])]

    def pools_of(self, wish: LeaseRequest) -> str:
        """Return its pools as text for people: with alternatives, those that it was granted."""
        if not wish.any_of or self.state != "granted":
            return wish.pools
        return ", ".join(str(Need(pool, units)) for pool, units in self.needs)

    @property
    def ends_at(self) -> str | None:
        """When it ends without a renewal: at the end of its TTL or its hold, whichever is first."""
        values = [at for at in (self.expires_at, self.hold_until) if at is not None]
        return min(values, key=instant_of, default=None)

    @property
    def lasts(self) -> float | None:
        """The seconds after which the server ends it at the latest, however often it is renewed.

        A booking may end before the hold, and ends also a lease without one. None: nothing ends it.
        """
        times = [] if self.hold is None else [self.hold]
        if self.hold_until is not None and self.granted_at is not None:
            span = instant_of(self.hold_until) - instant_of(self.granted_at)
            times.append(max(0.0, span.total_seconds()))
        return min(times, default=None)

    @property
    def stop_text(self) -> str:
        """Why its holder is asked to stop, and when it ends, as text for people."""
        who = f"the newer {self.superseded_by} of its group asks it"
        if self.preempted_by is not None:
            who = f"it was preempted: {self.preempted_by} goes before it and asks it"
        until = (
            "" if self.stop_until is None else f"; the lease ends at {second_of(self.stop_until)}"
        )
        return f"{who} to stop{until}"

    @property
    def end(self) -> str:
        """Why it has ended, as text for people."""
        return f"{self.cause}: {self.detail}" if self.detail else str(self.cause)


def lease_of(values: Any) -> Lease:
    """Convert a decoded JSON value to a lease. Raises StrangeAnswerError."""
    try:
        waiting = values["waiting"]
        return Lease(
            id=str(values["id"]),
            state=str(values["state"]),
            token=values["token"],
            pools=tuple(str(need["pool"]) for need in values["needs"]),
            needs=tuple((str(need["pool"]), int(need["units"])) for need in values["needs"]),
            slots={str(pool): [*names] for pool, names in values["slots"].items()},
            ttl=_seconds(values["ttl"]),
            hold=_seconds(values["hold"]),
            expires_at=values["expires_at"],
            hold_until=values["hold_until"],
            cause=values["cause"],
            detail=str(values["detail"]),
            waiting=None if waiting is None else _waiting(waiting),
            owner=str(values.get("owner", "")),
            labels={str(name): str(value) for name, value in values.get("labels", {}).items()},
            asked_at=str(values.get("asked_at", "")),
            superseded_by=values.get("superseded_by"),
            stop_until=values.get("stop_until"),
            preempted_by=values.get("preempted_by"),
            granted_at=values.get("granted_at"),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        why = misfit_text(error)
        raise StrangeAnswerError(f"the response is not a lease: {why}") from error


def _seconds(value: Any) -> float | None:
    return None if value is None else float(value)


def _waiting(values: Any) -> Waiting:
    eta = values["eta_seconds"]
    if eta is not None:
        earliest, latest = map(float, eta[:2])
        eta = earliest, latest
    return Waiting(
        position=int(values["position"]),
        eta_seconds=eta,
        reason=str(values["reason"]),
        overdue=bool(values.get("overdue", False)),
        code=str(values.get("code", "")),
    )
