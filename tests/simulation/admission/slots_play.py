"""Boskos, the lease proxy and native clients on the same slots: the service's cases and a model.

One seed is a sequence of calls, with time between them. After each, every slot and every lease must
equal the model's. Clients repeat requests, come late, and forget; operators revoke; a reaper
resets. Names contain the separators of keys.
"""

from dataclasses import asdict
from random import Random
from typing import Any

from moorage.core.admission.admit import admit
from moorage.core.admission.compat.boskos import AcquireRequest
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import FREE, LEASED, Need, PoolSpec, Slot, due_of
from moorage.core.admission.owners import LEASE_PROXY
from moorage.core.admission.pools import new_pool
from moorage.core.admission.requests import LeaseRequest, Proof
from moorage.core.clock import Instant
from moorage.core.errors import Error
from moorage.core.ids import LeaseId
from moorage.core.ledger.facts import Facts as LedgerFacts
from moorage.core.service_time import Moment, Timeline, When
from moorage.service.admission import ending, lease_cases
from moorage.service.admission.confirmations import LeasesConfirm
from moorage.service.audit_entries import Actor
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import World
from moorage.service.compat import boskos_cases
from moorage.service.compat.lease_proxy import GiveBack
from tests.simulation.admission import slots as naive
from tests.simulation.admission.books import Violation
from tests.simulation.admission.slots import BOSKOS, NATIVE, PROXY, SECOND

START = 1_700_000_000 * SECOND
STEPS = 120
OPERATOR = Actor("operator", None, "operator")
POOLS = ("a", "a/b")
STATES = ("free", "b/free")
REQUESTS = ("1", "b/1", "free/1")


class SlotsPlay:
    """The world of one seed. `run` raises `Violation`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = Random(seed)
        self.now = START
        self.log: list[str] = []
        self.numbers = 0
        self.facts = Facts(timeline=Timeline(alive_at=Instant(START)))
        self.world = World(LedgerFacts(frozenset(), frozenset()), self.facts)
        self.model = naive.Model({}, [], START)
        self.told: list[str] = []
        """Names that callers of the proxy have received and not released yet."""
        for pool in POOLS:
            self._make(pool)

    def _make(self, pool: str) -> None:
        dice, ttl = self.dice, self.dice.randrange(10, 40) * SECOND
        rules = naive.Rules(
            ttl=ttl,
            hold=dice.choice([None, 8 * SECOND, 20 * SECOND]),
            cooldown=dice.choice([0, 0, 3 * SECOND]),
            lock_delay=dice.choice([0, 0, 9 * SECOND]),
            proxy_ttl=dice.choice([None, None, 30 * SECOND]),
        )
        spec = PoolSpec(limit=None, ttl_max=100 * SECOND, **asdict(rules))
        self.model.rules[pool] = rules
        self.facts.pools[pool] = new_pool(pool, spec, Instant(START))
        self.facts.slots[pool] = {}
        for n in range(dice.choice([1, 2, 3])):
            name, state = f"{pool}.{n}".replace("/", "-"), dice.choice(("free", *STATES))
            slot = Slot(pool, name, state, "", None, {}, Instant(n))
            self.facts.slots[pool][name] = slot
            self.model.slots.append(naive.Slot(pool, name, state, n))

    def run(self) -> "SlotsPlay":
        """Run it; return itself."""
        acts = [
            *([self._boskos] * 6),
            *([self._boskos_releases, self._heartbeats, self._reaps] * 2),
            *([self._by_name, self._janitor] * 2),
            *([self._native] * 4),
            *([self._again, self._renews] * 4),
            *([self._polls] * 3),
            *([self._gives_back, self._revokes, self._gone] * 2),
            *([self._proxy] * 5),
            *([self._proxy_releases] * 4),
        ]
        try:
            for _ in range(STEPS):
                self._pass(self.dice.choice([0, 1, 1, 2, 3, 5, 11, 25]) * SECOND)
                self.dice.choice(acts)()
                self._confirms()
                self._compare()
        except (AssertionError, LookupError, ValueError, TypeError) as error:
            error.add_note("\n".join([f"seed {self.seed}; the last calls:", *self.log[-30:]]))
            raise
        return self

    @property
    def when(self) -> When:
        """Now."""
        at = Instant(self.now)
        return When(Moment(at, at), at)

    def _do(self, case: UseCase[Any]) -> Any:
        """Run a case as its own batch; return its answer or the code of its refusal."""
        self.log.append(f"{(self.now - START) / SECOND:9.3f} {case}")
        try:
            decided = case.decide(self.world, self.when).admission
        except Error as refusal:
            self._admit(Changes())
            return refusal.code
        made = Changes() if decided is None else decided
        self.facts.apply(made)
        self._admit(made)
        try:
            return case.conclude(self.world, self.when)
        except Error as refusal:
            return refusal.code

    def _admit(self, decided: Changes) -> None:
        made = admit(
            self.facts,
            self.when.moment,
            self.when.wall,
            polled=frozenset(decided.polled),
            at_once=decided.at_once,
        )
        self.facts.apply(made)

    def _pass(self, span: int) -> None:
        """Let time pass, with all timed work."""
        until = self.now + span
        while True:
            dues = [due_of(lease) for lease in self.facts.leases.values()]
            dues += [pool.wake_at for pool in self.facts.pools.values()]
            times = [due for due in dues if due is not None] + self.model.due()
            following = min((at for at in times if self.now < at <= until), default=None)
            if following is None:
                break
            self._at(following)
        self._at(until)

    def _at(self, now: int) -> None:
        self.now = self.model.now = now
        dues = {key: due_of(lease) for key, lease in self.facts.leases.items()}
        self.facts.due = [key for key, due in dues.items() if due is not None and due <= now]
        self._do(lease_cases.Sweep(Instant(now)))
        self.log.pop()
        self.model.sweep()
        self.model.admit()

    def _compare(self) -> None:
        for slot in self.model.slots:
            found = self.facts.slots[slot.pool][slot.name]
            lease = None if slot.lease is None else slot.lease.id
            shown = (found.state, found.lease, found.updated_at)
            if shown != (slot.state, lease, slot.touched):
                raise Violation(f"I19: {slot.name} is {shown}, it should be {slot}")
        for one in self.model.leases:
            lease_ = self.facts.leases[LeaseId(one.id)]
            state = str(lease_.cause) if lease_.state == "ended" else lease_.state
            if state != one.state:
                raise Violation(f"I7: {one.id} is {state}, it should be {one}")
        for name, pool in self.facts.pools.items():
            waiting = [x for x in self.model.leases if x.pool == name and x.state == "waiting"]
            held = sum(slot.pool == name and slot.lease is not None for slot in self.model.slots)
            if (pool.waiting, pool.occupied) != (len(waiting), held):
                raise Violation(f"I15: {pool}, it should be {len(waiting)} and {held}")

    def _expect(self, found: object, expected: object) -> None:
        if found != expected:
            raise Violation(f"I9: the answer is {found}, it should be {expected}")

    def _fresh(self) -> LeaseId:
        self.numbers += 1
        return LeaseId(f"lease-{self.numbers:04}")

    def _ticket(self, kind: str, owner: str, pool: str, **more: Any) -> naive.Lease:
        known = {"wants": FREE, "dest": LEASED, "units": 1, "patience": 30 * SECOND}
        patience = more.get("patience", known["patience"])
        return naive.Lease(
            id=self._fresh(),
            kind=kind,
            owner=owner,
            pool=pool,
            deadline=self.now + patience,
            **(known | more),
        )

    def _some(self, *states: str, kind: str | None = None) -> naive.Lease | None:
        found = [
            lease
            for lease in self.model.leases
            if lease.state in states and kind in (None, lease.kind)
        ]
        return self.dice.choice(found) if found else None

    # Boskos.

    def _wish(self, ticket: naive.Lease, request_id: str = "") -> AcquireRequest:
        kind = (ticket.pool, ticket.wants, ticket.dest, ticket.owner)
        return AcquireRequest(*kind, request_id, LeaseId(ticket.id), "")

    def _boskos(self) -> None:
        """Poll with a request id, one's own or again."""
        dice = self.dice
        ticket = self._ticket(
            BOSKOS, dice.choice("xy"), dice.choice(POOLS), wants=dice.choice(STATES), dest="busy"
        )
        request_id = dice.choice(REQUESTS)
        answer = self._do(boskos_cases.Acquire(self._wish(ticket, request_id)))
        lease = self.model.request(ticket, request_id)
        self.model.admit(None if lease is None else lease.id)
        held = [] if lease is None or lease.state != "granted" else self.model.held_by(lease)
        self._expect(_slot(answer), held[0].name if held else None)

    def _janitor(self) -> None:
        """Acquire without a request id: a free slot, now or never."""
        dice = self.dice
        ticket = self._ticket(
            BOSKOS, "janitor", dice.choice(POOLS), wants=dice.choice(STATES), dest="cleaning"
        )
        answer = self._do(boskos_cases.Acquire(self._wish(ticket)))
        left = self.model.admit()
        found = None
        if left.get((ticket.pool, ticket.wants), 0) > 0:
            slot = self.model.idle(ticket.pool, ticket.wants)[0]
            self.model.arrive(ticket)
            self.model.grant(ticket, [slot])
            found = slot.name
        self._expect(_slot(answer), found)

    def _by_name(self) -> None:
        """Take slots by their names: all of them, the free ones, or none."""
        names = sorted(
            {self.dice.choice(self.model.slots).name for _ in range(self.dice.choice([1, 1, 2]))}
        )
        wish = AcquireRequest("", FREE, "busy", "namer", "", LeaseId(""), "")
        answer = self._do(boskos_cases.AcquireNamed(wish, names, [self._fresh() for _ in names]))
        left = self.model.admit()
        slots = [self.model.slot(name) for name in names]
        fine = all(slot in self.model.idle(slot.pool, FREE) for slot in slots)
        for pool in POOLS:
            wanted = sum(slot.pool == pool for slot in slots)
            fine = fine and wanted <= max(0, left.get((pool, FREE), 0))
        taken = sorted(slot.name for slot in answer) if isinstance(answer, list) else None
        self._expect(taken, names if fine else None)
        for slot in slots if fine else ():
            ticket = self._ticket(BOSKOS, "namer", slot.pool, dest="busy")
            held = self.facts.slots[slot.pool][slot.name].lease
            assert held is not None
            ticket.id = held
            self.model.arrive(ticket)
            self.model.grant(ticket, [slot])

    def _boskos_releases(self) -> None:
        lease = self._some("granted", kind=BOSKOS)
        if lease is not None:
            slot, dest = self.model.held_by(lease)[0], self.dice.choice(("free", "dirty", *STATES))
            self._do(boskos_cases.Release(slot.name, lease.owner, False, dest, OPERATOR))
            self.model.let_go(slot, dest, "released")
            self.model.admit()

    def _heartbeats(self) -> None:
        lease = self._some("granted", kind=BOSKOS)
        if lease is not None:
            slot = self.model.held_by(lease)[0]
            self._do(boskos_cases.Update(slot.name, lease.owner, False, slot.state, {}))
            slot.touched = self.now

    def _reaps(self) -> None:
        """Reset old slots, also those of native leases and of the proxy."""
        pool, state = self.dice.choice(POOLS), self.dice.choice(("busy", LEASED, LEASED))
        seconds, dest = self.dice.choice([3, 6, 20]), self.dice.choice(("free", "dirty"))
        expire = seconds * 1_000_000_000
        answer = self._do(boskos_cases.Reset(pool, state, expire, dest, True, OPERATOR))
        taken = self.model.reset(pool, state, seconds, dest)
        self._expect(sorted(answer), sorted(taken))
        self.model.admit()

    # Native clients.

    def _ask(self, ticket: naive.Lease, owner: str, key: str) -> Any:
        ask = LeaseRequest(
            id=LeaseId(ticket.id),
            owner=owner,
            key=key,
            digest=f"{ticket.pool} {ticket.units}",
            needs=(Need(ticket.pool, ticket.units),),
            patience=ticket.patience,
            attended=owner == LEASE_PROXY,
        )
        return self._do(lease_cases.LeaseAcquire(LeaseId(""), request=ask))

    def _native(self) -> None:
        pool = self.dice.choice(POOLS)
        there = sum(slot.pool == pool for slot in self.model.slots)
        rules = self.model.rules[pool]
        ticket = self._ticket(
            NATIVE,
            "native",
            pool,
            units=self.dice.randrange(1, there + 1),
            patience=self.dice.choice([5, 12]) * SECOND,
            ttl=rules.ttl,
            hold=rules.hold,
        )
        self._ask(ticket, "native", ticket.id)
        self.model.arrive(ticket)
        self.model.admit()

    def _again(self) -> None:
        """Send the same wish once more: its answer was lost."""
        lease = self._some("waiting", "granted", kind=NATIVE)
        if lease is not None and lease.units == self._asked(lease):
            self._ask(lease, "native", lease.id)
            self.model.hear(lease)
            self.model.admit()

    def _asked(self, lease: naive.Lease) -> int:
        return int(self.facts.leases[LeaseId(lease.id)].digest.split()[1])

    def _polls(self) -> None:
        lease = self._some("waiting", kind=NATIVE) or self._some("waiting", kind=PROXY)
        if lease is not None:
            self._do(lease_cases.LeasePoll(LeaseId(lease.id)))
            self.model.hear(lease)
            self.model.admit()

    def _renews(self) -> None:
        lease = self._some("granted", kind=NATIVE)
        if lease is not None:
            self._do(lease_cases.LeaseRenew(LeaseId(lease.id), Proof(lease.owner)))
            self.model.hear(lease)
            self.model.admit()

    def _gives_back(self) -> None:
        lease = self._some("waiting", "granted", kind=NATIVE)
        if lease is not None:
            self._do(lease_cases.LeaseRelease(LeaseId(lease.id), Proof(lease.owner)))
            self.model.end(lease, "withdrawn" if lease.state == "waiting" else "released")
            self.model.admit()

    def _revokes(self) -> None:
        by = lease_cases.OnBehalf(OPERATOR)
        if (lease := self._some("granted")) is not None:
            self._do(ending.LeaseRevoke(LeaseId(lease.id), "", by=by))
            self.model.end(lease, "revoked")
        self.model.admit()

    def _gone(self) -> None:
        """Revoke a lease whose holder is gone, also one that has ended."""
        lease = self._some("granted", "revoked", "hold_over", kind=PROXY)
        if lease is not None:
            more = {"pools": frozenset({lease.pool}), "by": lease_cases.OnBehalf(OPERATOR)}
            self._do(ending.HolderGone(LeaseId(lease.id), "", **more))
            self.model.holder_gone(lease)
            self.model.admit()

    # The lease proxy.

    def _proxy(self) -> None:
        pool = self.dice.choice(POOLS)
        rules = self.model.rules[pool]
        ticket = self._ticket(PROXY, LEASE_PROXY, pool, hold=rules.hold)
        ticket.deadline += naive.PRESENCE
        self._ask(ticket, LEASE_PROXY, ticket.id)
        self.model.arrive(ticket)
        self.model.admit()

    def _confirms(self) -> None:
        """Answer callers with their grants; some have disconnected before."""
        for lease in self.model.leases:
            fresh = lease.kind == PROXY and lease.state == "granted" and not lease.confirmed
            if fresh and self.dice.random() < 0.8:
                self._do(LeasesConfirm([LeaseId(lease.id)]))
                self.model.confirm(lease)
                self.model.admit()
                self.told += [slot.name for slot in self.model.held_by(lease)]

    def _proxy_releases(self) -> None:
        """Release a name received earlier, in time or late."""
        if self.told:
            name = self.told.pop(self.dice.randrange(len(self.told)))
            self._do(GiveBack(name))
            self.model.give_back(name)
            self.model.admit()


def _slot(answer: Any) -> str | None:
    """Return the slot's name in the answer to a poll; None: there was none."""
    slot = getattr(answer, "slot", None)
    return None if slot is None else slot.name
