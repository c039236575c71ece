"""Simulated clients: some behave well, others crash, repeat, come late, sleep, lie or forget.

A client is a generator. It yields a `do.Call` and is sent the answer (`Seen`, `Refused`, or `LOST`
if none came), or it yields a number of microseconds to wait. It knows true time only through its
own clock, and uses a lease only as long as that clock permits.
"""

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Protocol

from moorage.core.admission.model import FencingToken, Lease, Need
from moorage.core.ids import BookingId, LeaseId
from tests.simulation.admission import bookers
from tests.simulation.admission import calls as do
from tests.simulation.admission.server import Refused, Seen

SECOND = 1_000_000
MARGIN = 100_000
"""A holder stops this long before it believes that its lease is over."""

LOST = Refused("lost")
"""No answer came: whether anything was done is unknown."""

Steps = Generator[Any, Any, Any]


class World(Protocol):
    """What a client can see and do."""

    @property
    def now(self) -> int:
        """True time."""
        ...

    @property
    def faulty(self) -> bool:
        """Whether faults may happen. Later every client does one more round without faults."""
        ...

    @property
    def offers(self) -> dict[str, list[LeaseId]]:
        """By owner, the leases that others have offered to it."""
        ...

    def believes(self, lease: LeaseId, until: int) -> None:
        """Report until when this client will use a lease."""
        ...

    def told(self, ask: do.Ask | do.Accept, seen: Lease) -> None:
        """Report the answer to a request."""
        ...


@dataclass
class Wishes:
    """What a client requests, again and again."""

    needs: tuple[Need, ...]
    priority: int = 0
    ttl: int | None = None
    hold: int | None = None
    patience: int = 10 * SECOND
    forced: bool = False
    pull: bool = False
    allocations: str | None = None
    group: str = ""
    cancel_running: bool = False
    any_of: do.Options = ()
    in_order: bool = False
    preemptible: int | None = None
    borrow: int | None = None
    work: int = 5 * SECOND


@dataclass
class Client:
    """One client with its own name and random source, that acts for an owner."""

    world: World
    name: str
    owner: str
    random: Random
    wishes: Wishes
    hands: Random = field(default_factory=lambda: Random(0))
    """Decides about handing over and keeping, so that nothing else depends on it."""
    clumsy: float = 0.05
    """How likely each of its steps goes wrong."""
    attempts: int = 0
    rounds: int = 0
    booker: bookers.Booker | None = None
    booked: tuple[BookingId, tuple[Need, ...]] | None = None
    """The booking that it uses in this round, and the units of that."""
    old: list[tuple[LeaseId, FencingToken | None]] = field(default_factory=list)
    """Its earlier leases."""

    def run(self) -> Steps:
        """Ask, wait, work and give back, until nothing may go wrong any more and it went well."""
        while True:
            yield self.random.randrange(4 * SECOND)
            well = not self.world.faulty
            done = yield from self._round()
            self.rounds += done
            if well and done:
                return

    def _slips(self) -> bool:
        return self.world.faulty and self.random.random() < self.clumsy

    def _round(self) -> Steps:
        """Return whether a lease was had and given back as it should be."""
        likely = 0.7 if self.world.offers[self.owner] else 0.1
        if any(self.world.offers.values()) and self.hands.random() < likely:
            taken = yield from self._takes_over()
            if taken is None or taken.lease.state != "granted":
                return False
            return (yield from self._work(taken))
        self.booked = None
        if self.booker is not None and self.world.faulty:
            self.booked = yield from self.booker.books(self.name, self.owner)
        self.attempts += 1
        ask = self._ask()
        seen = yield from self._insist(ask)
        if seen is None:
            return False
        seen = yield from self._wait(ask, seen)
        while seen is not None and self.random.random() < 0.15:
            seen = yield from self._tries_again(seen)
        return False if seen is None else (yield from self._work(seen))

    def _ask(self) -> do.Ask:
        wishes = self.wishes
        plain = do.Ask(
            owner=self.owner,
            key=self._key(),
            needs=wishes.needs,
            priority=wishes.priority,
            ttl=wishes.ttl,
            hold=wishes.hold,
            patience=wishes.patience,
            forced=wishes.forced,
            pull=wishes.pull,
            allocations=wishes.allocations,
            group=wishes.group,
            cancel_running=wishes.cancel_running,
            any_of=wishes.any_of,
            in_order=wishes.in_order,
            preemptible=wishes.preemptible,
            borrow=wishes.borrow,
        )
        if self.booked is None or self.booker is None:
            return plain
        return bookers.ask(self.booker.random, plain, self.booked)

    def _key(self) -> str:
        return f"{self.name}/{self.attempts}"

    def _insist(self, ask: do.Ask | do.Accept) -> Steps:
        """Request with one key until there is an answer, or give up."""
        for _ in range(8):
            sent = self.world.now
            answer = yield ask
            if isinstance(answer, Seen):
                self._hears(ask, answer, sent)
                if self._slips():  # asks again, as if it had heard nothing
                    yield self.random.randrange(3 * SECOND)
                    continue
                return answer
            if answer is not LOST:
                yield self.random.randrange(5 * SECOND)
                return None
            yield self.random.randrange(SECOND)
        return None

    def _hears(self, ask: do.Ask | do.Accept, seen: Seen, sent: int) -> None:
        self.world.told(ask, seen.lease)
        self._relies(seen, sent)

    def _relies(self, seen: Seen, sent: int) -> int | None:
        """Report, and return, until when it may use the lease; None: until further notice."""
        if seen.lease.state != "granted":
            return 0
        if seen.remaining is None:
            return None
        until = sent + seen.remaining - MARGIN
        self.world.believes(seen.lease.id, until)
        return until

    def _wait(self, ask: do.Ask, seen: Seen) -> Steps:
        """Poll until it is granted or has ended, or give up in one of many ways."""
        while seen.lease.state == "waiting":
            if self._slips():
                return (yield from self._gives_up(seen.lease))
            late = self.wishes.patience if self._slips() else self.wishes.patience // 4
            yield self.random.randrange(late // 2, late + SECOND // 4)
            sent = self.world.now
            answer = yield do.Poll(seen.lease.id)
            if isinstance(answer, Seen):
                seen = answer
                self._hears(ask, seen, sent)
            elif answer is not LOST:
                return None
        return seen if seen.lease.state == "granted" else None

    def _tries_again(self, seen: Seen) -> Steps:
        """Continue with a new attempt, in one step."""
        self.old.append((seen.lease.id, seen.lease.token))
        ask, sent = self._anew(), self.world.now
        for _ in range(4):
            again = yield do.Retry(seen.lease.id, self.owner, seen.lease.token, ask)
            if isinstance(again, Seen):
                self._hears(ask, again, sent)
                return (yield from self._wait(ask, again))
            if again is not LOST:
                return None
        return None

    def _gives_up(self, lease: Lease) -> Steps:
        if self.random.random() < 0.5:
            yield do.Release(lease.id, self.owner, None)
        else:
            yield self.random.randrange(60 * SECOND)  # and the ticket stays behind

    def _takes_over(self) -> Steps:
        """Accept what another owner offers, or decline it; return the lease, or None."""
        mine = self.world.offers[self.owner]
        theirs = [one for found in self.world.offers.values() for one in found]
        if mine and self.hands.random() < 0.8:
            lease = mine.pop(self.hands.randrange(len(mine)))
            if self.hands.random() < 0.3:  # so that others of this owner want it, too
                mine.append(lease)
        else:  # also what is offered to somebody else, or was its own
            lease = self.hands.choice(theirs)
        if self.hands.random() < 0.2:
            yield do.Decline(lease, self.owner)
            return None
        self.attempts += 1
        return (yield from self._insist(do.Accept(lease, self.owner, self._key())))

    def _offers(self, lease: Lease) -> Steps:
        """Offer a lease to another owner; perhaps think better of it."""
        others = sorted(name for name in self.world.offers if name != self.owner)
        if not others:
            return
        to = self.hands.choice(others)
        lasts = self.hands.choice([SECOND, 5 * SECOND, 30 * SECOND])
        token = lease.token if self.hands.random() < 0.5 else None
        if (yield do.Offer(lease.id, self.owner, token, to, lasts)) is LOST:
            return
        self.world.offers[to].append(lease.id)
        if self.hands.random() < 0.3:
            yield self.hands.randrange(5 * SECOND)
            yield do.Withdraw(lease.id, self.owner, None)

    def _work(self, seen: Seen) -> Steps:
        lease = seen.lease
        self.old.append((lease.id, lease.token))
        until = self._relies(seen, self.world.now)
        if self.world.faulty and self.hands.random() < 0.3:
            yield from self._offers(lease)
        if self.world.faulty and self.hands.random() < 0.1:
            wanted = self.hands.choice([SECOND, 10 * SECOND, 25 * SECOND])
            yield do.Keep(lease.id, self.owner, lease.token, wanted)
            if self.hands.random() < 0.5:
                return False  # nobody comes back: it ends by itself
        ends = self.world.now + self.random.randrange(1, 2 * self.wishes.work)
        while self.world.now < ends:
            if self._slips():
                yield from self._goes_astray(lease)
                return False
            if lease.ttl is None:
                yield ends - self.world.now
                break
            yield min(max(1, ends - self.world.now), lease.ttl // 3)
            sent = self.world.now
            answer = yield do.Renew(lease.id, self.owner, lease.token)
            if isinstance(answer, Seen):
                until = self._relies(answer, sent)
                if answer.lease.stop_until is not None and not self._slips():
                    break  # a newer request of its group, or another ticket, asks it to stop
            elif answer is not LOST or (until is not None and self.world.now >= until):
                return False  # it has lost its lease, and stops
        return (yield from self._gives_back(lease))

    def _gives_back(self, lease: Lease) -> Steps:
        token = lease.token if self.random.random() < 0.5 else None
        for _ in range(8):
            answer = yield do.Release(lease.id, self.owner, token)
            if answer is not LOST and not self._slips():  # else once more, for nothing
                return True
            yield self.random.randrange(SECOND)
        return False

    def _goes_astray(self, lease: Lease) -> Steps:
        """Crash, or be stopped past the TTL and continue with the old token, or lie."""
        match self.random.randrange(7):
            case 0:
                return  # it has crashed, and comes back under a new key
            case 1:
                yield self.random.randrange(3 * (lease.ttl or 10 * SECOND))
                yield do.Renew(lease.id, self.owner, lease.token)
                yield do.Release(lease.id, self.owner, lease.token)
            case 2:
                again = replace(self._anew(), group=lease.group)  # one taken over may have another
                yield do.Retry(lease.id, self.owner, lease.token, again)
            case 3:
                hold = self.random.choice([None, SECOND, 10 * SECOND])
                at_most = hold is not None and self.random.choice([True, False])
                yield do.Hold(lease.id, self.owner, lease.token, hold, at_most)
            case 4:
                yield do.Report(lease.id, self.owner, lease.token, "failed")
                yield do.Report(lease.id, self.owner, lease.token, "ok")
                yield do.Release(lease.id, self.owner, FencingToken(0, 0, 0))
            case 5:
                other, token = self.random.choice(self.old)
                yield do.Release(other, self.owner, token)
                yield do.Release(lease.id, f"not {self.owner}", None)
            case 6:
                yield do.Renew(lease.id, self.owner, FencingToken(9, 9, 9))
                yield self._ask_otherwise()

    def _anew(self) -> do.Ask:
        self.attempts += 1
        return self._ask()

    def _ask_otherwise(self) -> do.Ask:
        """The same key with another body: to be refused."""
        ask = self._ask()
        return replace(ask, priority=ask.priority + 1, forced=False)
