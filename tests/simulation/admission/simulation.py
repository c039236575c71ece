"""One seed: a world in virtual time, with every kind of fault.

Calls and answers are lost, doubled and late; processes crash before or after a commit, as they do
when a sync fails, stay away and come back; the disk is full for a while; the wall clock is set
forward and back; operators change limits, pause and revoke. All random choices come from the seed,
so a seed repeats. In liveness mode the faults stop at some time: then every client must get what it
requests, in bounded time.
"""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any
from uuid import UUID

from msgspec import structs

from moorage.core.admission.booking_model import Booking
from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease
from moorage.core.ids import LeaseId
from tests.simulation.admission import bookers, lenders, scenarios, wakes
from tests.simulation.admission import calls as do
from tests.simulation.admission.auditor import Auditor
from tests.simulation.admission.books import Violation
from tests.simulation.admission.clients import LOST, SECOND, Client, Steps
from tests.simulation.admission.memory import Memory
from tests.simulation.admission.server import Server

START = 1_700_000_000 * SECOND
BATCH_MAX = 8
ALIVE = 5 * SECOND
PATIENCE_FOR_ANSWERS = 2 * SECOND
LIVENESS_MAX = 3_000 * SECOND
"""After the faults, every client is served within this time: far more than the work needs."""


class Simulation:
    """The world of one seed. `run` raises `Violation`."""

    shared = True
    """May several processes serve at the same time?"""
    looks_ahead = 0.1
    """How often it looks whether anything would move before a time that is noted."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.liveness = seed % 2 == 1
        self.now = START
        self.wall_ahead = 0
        self.faulty = True
        self.until = START + self.random.randrange(30, 90) * SECOND
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.numbers = count()
        self.log: deque[tuple[Any, ...]] = deque(maxlen=60)
        self.auditor = Auditor(capacity=scenarios.CAPACITY)
        self.memory = Memory(page=self.random.choice([1, 2, 5]), capacity=scenarios.CAPACITY)
        self.servers: list[Any] = []
        self.queue: list[tuple[do.Call, Callable[[Any], None]]] = []
        self.batch_at: int | None = None
        self.sweep_at: int | None = None
        self.more = Random(f"newest {seed}")
        """For what was added later, so that the other choices of a seed stay."""
        self.specs = scenarios.specs_of(self.more, dict(scenarios.specs(self.random)))
        self.lent = Random(f"cohorts {seed}")
        self.books = Random(f"bookings {seed}")
        self.ahead = Random(f"ahead {seed}")
        made = {name for name in self.specs if scenarios.is_made(name)}
        if self.lent.random() < 0.3:
            self.specs = lenders.specs_of(self.lent, self.specs, made)
        self.booked = self.books.random() < 0.3
        if self.booked:
            self.specs = bookers.specs_of(self.books, self.specs)
        self.clients: list[Client] = []
        self.known: list[Any] = []
        """Bookings that clients have made."""
        self.offers: dict[str, list[LeaseId]] = {}
        self.working = 0
        self.jump_unseen = False
        """The wall clock was set, and no process that knew better has committed since."""
        self.batches = 0
        self.full_until = 0
        """True time until which the disk is full."""

    # The world that clients see.

    def believes(self, lease: LeaseId, until: int) -> None:
        """A client will act on a lease until then."""
        self.auditor.believes(lease, until)

    def told(self, ask: do.Ask | do.Accept, seen: Lease) -> None:
        """A client was answered."""
        self.auditor.answered(ask, seen)

    # Its course.

    def run(self) -> "Simulation":
        """Run it; return itself."""
        try:
            self._begin()
            while self.events and self._goes_on():
                self.now, _, event = heapq.heappop(self.events)
                event()
            if self.liveness:
                self._all_is_served()
        except (Violation, AssertionError, LookupError, ValueError, TypeError) as error:
            error.add_note(self.story())
            raise
        return self

    def story(self) -> str:
        """Return the seed and what happened last."""
        lines = [f"MOORAGE_SEED={self.seed}, {(self.now - START) / SECOND:.3f} s; the last events:"]
        lines += [
            f"{(at - START) / SECOND:9.3f} {' '.join(map(str, rest))}" for at, *rest in self.log
        ]
        return "\n".join(lines)

    def _goes_on(self) -> bool:
        if not self.liveness:
            return self.events[0][0] < self.until
        return self.faulty or self.working > 0

    def _begin(self) -> None:
        self._start_server()
        for name, spec in self.specs.items():
            if spec.limit is None:
                slots = scenarios.slots(self.random, name)
                self.memory.slots[name] = {slot.name: slot for slot in slots}
                self.auditor.slots_made(slots)
            put: do.Call = do.PoolPut(name, spec)
            if scenarios.is_made(name):
                put = do.TemplatePut(scenarios.TEMPLATE, spec, scenarios.IDLE)
            self.queue.append((put, lambda _: None))
        self._work()
        shared = self.random.random() < 0.5  # so that quotas bind
        for n in range(self.random.randrange(2, 8)):
            wishes = scenarios.wishes(self.random, self.specs)
            name = f"client-{n}"
            owner = f"owner-{n % 2}" if shared else name
            wishes = scenarios.grouped(self.more, wishes)
            wishes = scenarios.preemptible(Random(f"preemptible {self.seed} {n}"), wishes)
            wishes = lenders.wishes_of(self.lent, wishes, self.specs)
            if wishes.group and self.more.random() < 0.5:
                owner = f"project-{n % 2}/{owner}"  # whose groups are those of the project
            hands = Random(f"hands {self.seed} {n}")
            client = Client(self, name, owner, Random(self.random.random()), wishes, hands)
            if self.booked:
                self._may_book(client, n)
            self.offers.setdefault(owner, [])
            self.clients.append(client)
            self._later(self.random.randrange(2 * SECOND), self._step(client.run()))
        self.working = len(self.clients)
        self._later(self.random.randrange(20 * SECOND), self._step(self._operator(), False))
        if self.booked:
            steps = bookers.operators(
                self.books, self.specs, self._wall, self._bookings, lambda: self.faulty
            )
            self._later(self.books.randrange(10 * SECOND), self._step(steps, False))
        self._later(ALIVE, self._beat)
        if self.liveness:
            self._later(self.until - self.now, self._heal)

    def _may_book(self, client: Client, n: int) -> None:
        random = Random(f"books {self.seed} {n}")
        borrow = random.choice([None, None, SECOND, 3 * SECOND])
        client.wishes = replace(client.wishes, borrow=borrow)
        if random.random() < 0.6:
            client.booker = bookers.Booker(random, self.specs, self._wall, self.known)

    def _wall(self) -> int:
        return self.now + self.wall_ahead

    def _bookings(self) -> list[Booking]:
        """Return those that are not over."""
        there = self.memory.bookings.values()
        return [one for one in there if one.cancelled_at is None and one.ends_at > self._wall()]

    def _later(self, after: int, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + after, next(self.numbers), event))

    def _chance(self, likely: float) -> bool:
        return self.faulty and self.random.random() < likely

    # Clients and the net between.

    def _step(self, steps: Steps, counts: bool = True) -> Callable[[], None]:
        """Return the first step of a client."""
        return lambda: self._resume(steps, None, counts)

    def _resume(self, steps: Steps, answer: Any, counts: bool) -> None:
        try:
            asked = steps.send(answer)
        except StopIteration:
            self.working -= counts
            return
        if isinstance(asked, int):
            self._later(asked, lambda: self._resume(steps, None, counts))
            return
        waiting = [True]

        def reply(said: Any) -> None:
            if waiting:
                waiting.clear()
                self._resume(steps, said, counts)

        self._later(PATIENCE_FOR_ANSWERS, lambda: reply(LOST))
        for _ in range(2 if self._chance(0.03) else 1):
            self._send(asked, reply)

    def _send(self, call: do.Call, reply: Callable[[Any], None]) -> None:
        if self._chance(0.03):
            return
        late = self.random.randrange(20 * SECOND) if self._chance(0.03) else 0
        loses = self._chance(0.03)

        def back(said: Any) -> None:
            if not loses:
                self._later(self.random.randrange(SECOND // 20), lambda: reply(said))

        self._later(late + self.random.randrange(SECOND // 20), lambda: self._arrive(call, back))

    # The service.

    def _start_server(self) -> None:
        self.servers.append(Server(self.memory, self.auditor, self._new_id))
        self.auditor.jumped |= self.jump_unseen

    def _new_id(self) -> LeaseId:
        return LeaseId(str(UUID(int=self.random.getrandbits(128))))

    def _arrive(self, call: do.Call, reply: Callable[[Any], None]) -> None:
        if not self.servers:
            return
        self.queue.append((call, reply))
        if self.batch_at is None:
            self.batch_at = self.now + self.random.choice([0, 1_000, 30_000])
            self._later(self.batch_at - self.now, self._work)

    def _work(self) -> None:
        """Carry out a batch, unless the process dies over it."""
        self.batch_at = None
        taken, self.queue = self.queue[:BATCH_MAX], self.queue[BATCH_MAX:]
        if not taken or not self.servers:
            return
        self.batches += 1
        self._carry_out(taken)
        self._plan_sweep()
        if self.queue:
            self._later(0, self._work)
        elif self.servers and not self.jump_unseen and self.ahead.random() < self.looks_ahead:
            wakes.nothing_moves(self.servers[-1], self._wall(), self.now, self.ahead)

    def _carry_out(self, taken: list[tuple[do.Call, Callable[[Any], None]]]) -> None:
        server = self.random.choice(self.servers)
        batch = server.decide([call for call, _ in taken], self.now + self.wall_ahead, self.now)
        if self._is_full():
            self.log.append((self.now, "the disk is full; nothing is kept of", batch.calls))
            for _, reply in taken:
                reply(LOST)
            return
        if self._chance(0.01):
            self.log.append((self.now, "crashes before the commit of", batch.calls))
            self._crash(server)
            return
        self._tell(batch.calls, batch.outcomes, batch.changes)
        self.jump_unseen = False
        server.commit(batch, self.now)
        dies = self._chance(0.01)
        left = frozenset() if dies else frozenset(batch.changes.unfinished)  # only it knows of them
        if batch.capacity_freed or left:
            self._sweep(self.memory.wanting() | left)
        for (_, reply), outcome in zip(taken, batch.outcomes, strict=True):
            if not dies:
                reply(server.answer(batch, outcome))
        if dies:
            self.log.append((self.now, "crashes after the commit"))
            self._crash(server)

    def _tell(self, calls: list[do.Call], outcomes: list[Any], changes: Changes) -> None:
        for call, outcome in zip(calls, outcomes, strict=True):
            self.log.append((self.now, call, "->", outcome))
        for key, lease in changes.leases.items():
            if lease is not None:
                self.log.append((self.now, "   ", key[:6], lease.state, lease.cause or ""))

    def _is_full(self) -> bool:
        """Return whether the disk is full now; the process continues, and so does time."""
        if self.now >= self.full_until and self._chance(0.01):
            self.full_until = self.now + self.random.randrange(30 * SECOND)
            self._later(self.full_until - self.now, self._has_room)
        return self.faulty and self.now < self.full_until

    def _has_room(self) -> None:
        self.auditor.restarted()
        self._sweep(self.memory.wanting())  # what the failed batches would have done

    def _crash(self, server: Any) -> None:
        """End a process; its unanswered calls are lost, and time continues without it."""
        self.servers.remove(server)
        self.queue.clear()
        away = self.random.choice([SECOND // 2, 3 * SECOND, 20 * SECOND, 60 * SECOND])
        self.auditor.restarted()
        self.auditor.jumped |= self.jump_unseen
        if not self.servers and self._chance(0.2):
            self._set_clock()

        def back() -> None:
            if self.servers and self.jump_unseen:  # it could not know better; they can, and soon
                self._later(SECOND, back)
                return
            if self.shared or not self.servers:
                self._start_server()
            self.auditor.restarted()
            self._sweep(self.memory.wanting())  # a release may not have been processed

        self._later(self.random.randrange(1, away), back)

    def _set_clock(self) -> None:
        if len(self.servers) > 1 and not self._all_know():
            return  # one could not know better, and another would put it right a moment later
        ahead = self.random.randrange(20, 5_000) * SECOND * self.random.choice([1, -1])
        self.log.append((self.now, "the wall clock is set by", ahead / SECOND))
        self.wall_ahead += ahead
        self.jump_unseen = True
        if self.servers and self._all_know():
            self._sweep()
        else:
            self.auditor.jumped = True

    def _all_know(self) -> bool:
        """Has every process seen the clock as it was before?"""
        return all(server.last is not None for server in self.servers)

    def _beat(self) -> None:
        self._sweep()
        if self._chance(0.03):
            self._set_clock()
        if self.shared and self._chance(0.02) and len(self.servers) == 1 and not self.jump_unseen:
            self._start_server()
        self._later(ALIVE, self._beat)

    def _sweep(self, pools: frozenset[str] = frozenset()) -> None:
        self._arrive(do.Sweep(pools), lambda _: None)

    def _plan_sweep(self) -> None:
        """Sweep when time permits something, as the service's timer does."""
        due = self.memory.next_due()
        if due is None:
            return
        at = self.now + max(SECOND // 2 if due <= self.auditor.at else 1, due - self.auditor.at)
        if self.sweep_at is not None and self.now <= self.sweep_at <= at:
            return
        self.sweep_at = at

        def fire() -> None:
            if self.sweep_at == at:
                self.sweep_at = None
                self._sweep()

        self._later(at - self.now, fire)

    # Operators.

    def _operator(self) -> Steps:
        """Change limits, drain, revoke; in the end put everything right."""
        names = sorted(self.specs)
        while self.faulty:
            yield self.random.randrange(25 * SECOND)
            name = self.random.choice(names)
            spared = scenarios.is_made(name) and self.more.random() < 0.8
            match self.random.randrange(7):
                case 0 | 1 if spared:
                    pass  # a pool that an operator changes is not one on demand any more
                case 0 | 1:
                    yield do.PoolPut(name, self._changed(name))
                case 2:
                    lasts = self.random.choice([None, SECOND, 4 * SECOND, 30 * SECOND])
                    yield do.PoolPause(name, True, lasts)
                    yield self.random.randrange(10 * SECOND)
                    if lasts is None or self.random.random() < 0.3:
                        yield do.PoolPause(name, False)
                case 3:
                    live = self._in_order()
                    if live:
                        yield do.Revoke(self.random.choice(live).id, None, None)
                case 5:
                    waiting = [lease for lease in self._in_order() if lease.state == "waiting"]
                    if waiting:
                        to = self.random.choice([None, None, -1, 1, 2])
                        moved = self.random.choice([waiting[0], *waiting]).id
                        if self.random.random() < 0.3:  # by another operator at the same time
                            self._send(do.Move(moved, None, None, -1), lambda _: None)
                        yield do.Move(moved, None, None, to)
                case 6:
                    live = self._in_order()
                    if live:
                        yield do.Force(self.random.choice(live).id, None, None)
                case 4 if self.specs[name].limit is not None:
                    yield do.PoolDelete(name)
        yield 25 * SECOND  # so that nothing old comes after it
        yield from self._put_right(names)

    def _changed(self, name: str) -> Any:
        spec = self.specs[name]
        limit = None if spec.limit is None else self.random.randrange(0, 5)
        quota = self.random.choice([None, spec.quota, 1])
        pool = self.memory.pools.get(name)
        if limit is not None and pool is not None and pool.spec.quota is None:
            # Now and then more room and a quota at once: it counts what was held without one.
            limit, quota = self.random.choice([(limit, quota), (6, 1)])
        pacing = scenarios.pacing(self.random)
        spec = lenders.changed(self.lent, spec)
        return structs.replace(spec, limit=limit, quota=quota, pacing=pacing)

    def _put_right(self, names: list[str]) -> Steps:
        for name in names:
            spec = self.specs[name]
            for call in (do.PoolPut(name, spec), do.PoolPause(name, False)):
                while (yield call) is LOST:
                    yield SECOND
        while True:  # crashed holders without a TTL are revoked by an operator
            yield 5 * SECOND
            for lease in self._in_order():
                since = lease.granted_at
                if since is not None and self.auditor.at - since > 60 * SECOND:
                    yield do.Revoke(lease.id, None, None)

    def _in_order(self) -> list[Lease]:
        """All that lives, in the order of asking."""
        return sorted(self.memory.leases.values(), key=lambda lease: lease.arrival)

    # Liveness.

    def _heal(self) -> None:
        self.log.append((self.now, "faults stop"))
        self.faulty = False
        if not self.servers:
            self._start_server()
        self.auditor.restarted()
        self._sweep(self.memory.wanting())
        self._later(LIVENESS_MAX, self._too_late)

    def _too_late(self) -> None:
        if self.working:
            raise Violation(f"I20: {self.working} clients still wait: {self.auditor.books.live}")

    def _all_is_served(self) -> None:
        """I7, I20: every client was served, and nothing was lost."""
        if self.working:
            raise Violation(f"I20: {self.working} clients stopped half-way")
