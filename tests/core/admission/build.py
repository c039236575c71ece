"""An in-memory service with pools and leases, for tests of the rules: each command is one batch."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import structs

from moorage.core.admission import expiry, leases, operator_actions, pools
from moorage.core.admission.admit import TicketsNeeded, admit, order
from moorage.core.admission.booking_model import Booking, Window
from moorage.core.admission.calendar import bookings
from moorage.core.admission.calendar.bookings import Booker
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts, Line
from moorage.core.admission.model import (
    FREE,
    LEASED,
    Lease,
    Need,
    Pool,
    PoolSpec,
    Result,
    Slot,
    due_of,
)
from moorage.core.admission.requests import LeaseRequest, Proof
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import BookingId, LeaseId
from moorage.core.restart import Restart
from moorage.core.service_time import Moment, Timeline

START = 1_000_000 * SECOND

OPERATOR = Proof()


class Refused:
    """`with Refused(code):` asserts that the body is refused with this code."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self.message = ""

    def __enter__(self) -> "Refused":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        assert isinstance(error, Error), f"expected {self._code}, got {error!r}"
        assert error.code == self._code, error
        self.message = error.message
        return True


def spec(limit: int | None = 1, **more: Any) -> PoolSpec:
    """Return the description of a pool; times are in microseconds."""
    return PoolSpec(**({"limit": limit, "ttl": 60 * SECOND, "ttl_max": 3_600 * SECOND} | more))


Needs = dict[str, int] | tuple[Need, ...]


def make_ask(
    name: str,
    needs: Needs,
    *,
    any_of: Sequence[Needs] = (),
    in_order: bool = False,
    **more: Any,
) -> LeaseRequest:
    """Return a request for a lease with this id and, unless given in `more`, this key."""
    known = {"id": LeaseId(name), "owner": "me", "key": name, "digest": "d"}
    request = LeaseRequest(**(known | {"needs": needs_of(needs)} | more))
    return request.any_of([needs_of(one) for one in any_of], in_order=in_order)


def needs_of(needs: Needs) -> tuple[Need, ...]:
    """Return needs given as units by pool."""
    if not isinstance(needs, dict):
        return needs
    return tuple(Need(pool, units) for pool, units in needs.items())


def booking(
    name: str, needs: dict[str, int], windows: Sequence[tuple[float, float]], **more: Any
) -> Booking:
    """Return a booking with this id and key; windows are in seconds from `START`."""
    known: dict[str, Any] = {
        "id": BookingId(name),
        "owner": "me",
        "key": name,
        "digest": "d",
        "needs": tuple(Need(pool, units) for pool, units in sorted(needs.items())),
        "windows": tuple(
            Window(Instant(START + round(a * SECOND)), Instant(START + round(b * SECOND)))
            for a, b in windows
        ),
        "closure": False,
        "lead": 0,
        "no_show": None,
        "note": "",
        "rule": "",
        "forced": False,
        "generation": 1,
        "created_at": Instant(START),
        "updated_at": Instant(START),
    }
    return Booking(**(known | more))


BOOKERS = Booker("admin", frozenset({"operator"}))
"""An operator, who may book for anybody."""


class World:
    """All stored facts, a clock, and the commands that change them.

    `admit` gets the lines in pages of `page` tickets and cannot see the others, so that a scan
    that reads beyond the loaded tickets fails.
    """

    def __init__(self, page: int = 1) -> None:
        self.facts = Facts(timeline=Timeline(alive_at=Instant(START)))
        self.now = START
        self.page = page
        self.revision = 0
        self.claim: Callable[[Lease], str | None] | None = None
        self.loads = 0
        """How often `admit` has asked for more tickets."""

    @property
    def moment(self) -> Moment:
        """The present time."""
        line = self.facts.timeline
        return Moment(Instant(self.now), Instant(self.now - line.downtime), line.outage_ended_at)

    @property
    def wall(self) -> Instant:
        """The wall clock, which differs from service time by five seconds."""
        return Instant(self.now + 5 * SECOND)

    def pool(self, name: str, limit: int | None = 1, **more: Any) -> Pool:
        """Create or change a pool; without a limit it is created for slots."""
        described = spec(limit, **more)
        if limit is None and name not in self.facts.pools:
            self.do((Changes(pools={name: pools.new_pool(name, described, self.wall)}), None))
        return self.do(pools.put(self.facts, self.moment, self.wall, name, described))

    def slots(self, pool: str, *names: str, state: str = FREE) -> None:
        """Add slots to a pool, which is created if it does not exist."""
        if pool not in self.facts.pools:
            self.pool(pool, None)
        changes = Changes()
        for n, name in enumerate(names):
            changes.slots[pool, name] = Slot(pool, name, state, "", None, {}, Instant(n))
        self.do((changes, None))

    def ask(self, name: str, needs: Needs | None = None, **more: Any) -> LeaseId:
        """Ask for units, by default one of pool `p` with unlimited patience."""
        polls = frozenset({LeaseId(name)}) if more.get("pull") else frozenset()
        if needs is None:
            needs = {} if more.get("any_of") else {"p": 1}
        wanted = make_ask(name, needs, **more)
        return self.do(leases.acquire(self.facts, self.moment, wanted), polls)

    def poll(self, key: str, seconds: float = 30) -> LeaseId:
        """Poll a ticket: its owner waits for this many seconds more."""
        until = Instant(self.moment.alive + round(seconds * SECOND))
        return self.do(
            leases.poll(self.facts, self.moment, LeaseId(key), until), frozenset({LeaseId(key)})
        )

    def release(
        self,
        key: str,
        proof: Proof = OPERATOR,
        states: dict[str, str] | None = None,
        **more: Any,
    ) -> LeaseId:
        """Release a lease or withdraw a ticket; `states`: of its slots afterwards, by pool."""
        if states is not None:
            draft = Draft(self.facts, self.moment, self.wall)
            draft.end(self.lease(key), "released", "", states)
            return self.do((draft.changes, LeaseId(key)))
        return self.do(
            leases.release(self.facts, self.moment, self.wall, LeaseId(key), proof, **more)
        )

    def renew(self, key: str, proof: Proof = OPERATOR) -> LeaseId:
        """Renew a lease."""
        return self.do(leases.renew(self.facts, self.moment, LeaseId(key), proof))

    def hold(
        self, key: str, wanted: int | None, proof: Proof = OPERATOR, *, at_most: bool = False
    ) -> LeaseId:
        """Change the hold of a lease."""
        made = leases.hold(self.facts, self.moment, LeaseId(key), proof, wanted, at_most=at_most)
        return self.do(made)

    def retry(self, key: str, new: LeaseRequest, proof: Proof = OPERATOR, **how: Any) -> LeaseId:
        """Release a lease and ask again under a new key."""
        wish = leases.Retry(new, **how)
        return self.do(leases.retry(self.facts, self.moment, self.wall, LeaseId(key), proof, wish))

    def move(self, key: str, priority: int | None = None) -> LeaseId:
        """Give a ticket another priority, or make it the first in all its lines."""
        self.facts.heads = {}
        for ticket in self.facts.leases.values():
            waits = ticket.state == "waiting" and ticket.booking is None
            for need in ticket.needs if waits else ():
                place = self.facts.heads.get(need.pool, order(ticket))
                self.facts.heads[need.pool] = min(place, order(ticket))
        return self.do(operator_actions.move(self.facts, LeaseId(key), priority))

    def force(self, key: str) -> LeaseId:
        """Force the grant of a ticket."""
        return self.do(operator_actions.force(self.facts, self.moment, LeaseId(key)))

    def pause(
        self,
        name: str,
        paused: bool = True,
        reason: str = "",
        seconds: float | None = None,
        by: str = "",
    ) -> Pool:
        """Pause or resume a pool; `seconds`: until the pause ends by itself."""
        until = None if seconds is None else Instant(self.now + round(seconds * SECOND))
        made = pools.pause(self.facts, self.moment, self.wall, name, paused, reason, until, by)
        return self.do(made)

    def report(self, key: str, result: Result = "ok", cause: str = "", pool: str = "p") -> Pool:
        """Report the outcome of a lease; return one of its pools."""
        self.do(
            leases.outcome(self.facts, self.moment, LeaseId(key), OPERATOR, result, "", cause=cause)
        )
        return self.facts.pools[pool]

    def book(
        self,
        name: str,
        needs: dict[str, int],
        *windows: tuple[float, float],
        by: Booker = BOOKERS,
        owner: str = "me",
        **more: Any,
    ) -> BookingId:
        """Book units; windows are in seconds from `START`, by a wall clock without jumps."""
        made = booking(name, needs, windows, owner=owner, **more)
        for pool in needs:
            self._load_calendar(pool)
        return self.do(bookings.book(self.facts, self.moment.at, made, by))

    def alter(self, name: str, by: Booker = BOOKERS, **more: Any) -> BookingId:
        """Change a booking."""
        made = structs.replace(self.facts.bookings[BookingId(name)], **more)
        return self.do(bookings.change(self.facts, self.moment.at, made, by))

    def cancel(self, name: str, by: Booker = BOOKERS) -> BookingId:
        """Cancel a booking."""
        return self.do(bookings.cancel(self.facts, self.moment, self.wall, BookingId(name), by))

    def _load_calendar(self, pool: str) -> None:
        if pool in self.facts.holding:
            return
        held: dict[tuple[Instant | None, str], int] = {}
        for lease in self.facts.leases.values():
            for need in lease.needs if lease.state == "granted" else ():
                if need.pool == pool:
                    at = (lease.hold_until, lease.booking or "")
                    held[at] = held.get(at, 0) + need.units
        self.facts.holding[pool] = held

    def wait(self, seconds: float) -> list[LeaseId]:
        """Let time pass, with a sweep at every time at which something is due, and at the end."""
        until = self.now + round(seconds * SECOND)
        ended = []
        while (due := self.due()) is not None and due < until:
            self.now = max(self.now, due)
            ended += self.sweep()
            if self.due() == due:
                raise AssertionError(f"something due at {due} is still due after a sweep")
        self.now = until
        return ended + self.sweep()

    def sweep(self) -> list[LeaseId]:
        """End what is due, and grant what time permits."""
        timeline = self.facts.timeline
        dues = {key: due_of(lease, timeline) for key, lease in self.facts.leases.items()}
        self.facts.due = [key for key, due in dues.items() if due is not None and due <= self.now]
        return self.do(expiry.sweep(self.facts, self.moment, self.wall, self.facts.due))

    def due(self) -> int | None:
        """Return when the next sweep is due, or None."""
        timeline = self.facts.timeline
        dues = [due_of(lease, timeline) for lease in self.facts.leases.values()]
        dues += [pool.wake_at for pool in self.facts.pools.values()]
        return min((due for due in dues if due is not None), default=None)

    def do(self, made: tuple[Changes, Any], polled: frozenset[LeaseId] = frozenset()) -> Any:
        """Apply the changes of a command, grant, and return the command's answer."""
        changes, answer = made
        stored = {key: one for key, one in self.facts.leases.items() if one.state == "waiting"}
        self.facts.apply(changes)
        loaded = {*changes.leases, *changes.heard}
        granted = self.admit(polled | changes.polled, stored, loaded)
        self.facts.apply(granted)
        changes.update(granted)
        if changes.is_published:
            self.revision += 1
        changes.stamp(1, self.revision)
        for key, lease in changes.leases.items():
            assert lease is not None
            self.facts.leases[key] = lease
        self.facts.grants = 0
        return answer

    def admit(
        self, polled: frozenset[LeaseId], stored: dict[LeaseId, Lease], changed: set[LeaseId]
    ) -> Changes:
        """Grant, with every ticket hidden until `admit` asks for its page.

        The pages are in the order of the rows: as `stored` before the batch has `changed` some.
        """
        facts, hidden = self.facts, stored.keys() - changed
        seen = Facts(
            timeline=facts.timeline,
            arrivals=facts.arrivals,
            pools=facts.pools,
            leases={key: lease for key, lease in facts.leases.items() if key not in hidden},
            slots=facts.slots,
            held=facts.held,
            bookings=facts.bookings,
            calls=facts.calls,
            holding=facts.holding,
            grants=facts.grants,
        )
        lines: dict[str, list[Lease]] = {}
        for lease in sorted(stored.values(), key=order):
            for name in {need.pool for need in lease.needs}:
                lines.setdefault(name, []).append(lease)
        while True:
            try:
                return admit(seen, self.moment, self.wall, self.claim, polled)
            except Restart as short:
                assert isinstance(short.needs, TicketsNeeded)
                self.loads += 1
                for name, wanted in short.needs.lines.items():
                    line = seen.lines.setdefault(name, Line())
                    had = len(line.tickets)
                    assert wanted > had, "admit asked for tickets that it already has"
                    for lease in lines.get(name, [])[had : had + self.page]:
                        line.tickets.append(lease.id)
                        line.end = order(lease)
                        seen.leases.setdefault(lease.id, facts.leases[lease.id])
                    line.whole = len(line.tickets) == len(lines.get(name, []))

    def lease(self, key: str) -> Lease:
        """Return a lease."""
        return self.facts.leases[LeaseId(key)]

    def states(self) -> dict[str, str]:
        """Return the state of every lease: w (waiting), g (granted) or the cause of its end."""
        short = {"waiting": "w", "granted": "g"}
        return {key: short.get(x.state, str(x.cause)) for key, x in self.facts.leases.items()}

    def holders(self, pool: str = "p") -> list[str]:
        """Return the keys of the leases that occupy units of a pool."""
        return [
            key
            for key, lease in self.facts.leases.items()
            if lease.state == "granted" and any(need.pool == pool for need in lease.needs)
        ]


__all__ = ["FREE", "LEASED", "OPERATOR", "START", "Refused", "World", "make_ask", "spec"]
