"""Random admission cases for a world of a few pools: cases of every kind, valid and invalid.

Each case is drawn as a function that makes it, so that it can be decided more than once.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from itertools import count
from random import Random
from typing import Any

from msgspec import structs

from moorage.core.admission.calendar.bookings import Booker
from moorage.core.admission.compat.boskos import AcquireRequest
from moorage.core.admission.compat.boskos_import import Resource
from moorage.core.admission.compat.lease_proxy import names_of
from moorage.core.admission.facts import Facts
from moorage.core.admission.model import Growth, Lease, Need, Pacing, PoolSpec, Result, Slot
from moorage.core.admission.owners import LEASE_PROXY, is_reserved
from moorage.core.admission.requests import NEVER, LeaseRequest, Proof, in_order
from moorage.core.admission.slot_config import ResourceType, SlotConfig
from moorage.core.admission.templates import TemplateWish
from moorage.core.clock import SECOND, Instant
from moorage.core.ids import BookingId, LeaseId
from moorage.core.wishes import wanted_of
from moorage.service.admission import (
    booking_cases,
    ending,
    handing_cases,
    lease_cases,
    pool_cases,
    slots,
    template_cases,
)
from moorage.service.admission.confirmations import (
    LeasesConfirm,
    LeaseUndelivered,
    TicketsLeft,
)
from moorage.service.admission.lease_cases import OnBehalf
from moorage.service.audit_entries import Actor
from moorage.service.batch.use_case import UseCase
from moorage.service.compat import boskos_cases, boskos_strict_cases
from moorage.service.compat.lease_proxy import GiveBack
from moorage.service.values import time_of
from moorage.wire.pools.bookings import BookedUnits, BookingChange, BookingWanted, Repeat
from tests.service.running import TESTER

Maker = Callable[[], UseCase[Any]]

LIMITED = ("a", "b")
SLOTTED = ("s", "t")
GROWING = "g"
NATIVE = "n"
POOLS = (*LIMITED, *SLOTTED, GROWING, NATIVE)
MADE = ("m/x", "m/y")
"""Pools that requests make, as long as there is the template."""

OWN = "-aaaa-7aaa-8aaa-aaaaaaaaaaaa"

OPERATES = Booker("admin", frozenset({"operator"}))

OWNERS = ("me", "me", "you", LEASE_PROXY)
CLIENTS = ("ann", "bob")
STATES = ("free", "free", "dirty")

FULL = SlotConfig(
    (
        ResourceType("s", names=("s1", "s2", "s3")),
        ResourceType("t", names=("t1", "t2")),
        ResourceType("g", growth=Growth(0, 2, "free")),
    )
)
OTHER = SlotConfig((ResourceType("s", names=("s1", "t2")), ResourceType("t", names=("t1",))))
NATIVE_NAMES = ("n1", "n2", "n3", "t1")
"""The last one is that of another pool's slot."""
LABELS: tuple[dict[str, str], ...] = ({}, {"at": "x"}, {"at": "y"}, {"at": "x", "big": "1"})
NAMES = tuple(name for entry in FULL.entries for name in entry.names)


class Drawing:
    """Draws cases that may be meaningful in the current world."""

    def __init__(self, seed: int, *, strict: bool) -> None:
        """Begin with a seed; with `strict`, Boskos' behavior is followed to the letter."""
        self.dice = Random(seed)
        self._strict = strict
        self.facts = Facts()
        """The current state of the world."""
        self._ids = count(1)
        self._kinds: Sequence[tuple[Callable[[], Maker], int]] = (
            *((self._ask, 12), (self._poll, 2), (self._leave, 1), (self._renew, 2)),
            *((self._release, 5), (self._revoke, 1), (self._hold, 1), (self._retry, 3)),
            *((self._record, 2), (self._offer, 5), (self._accept, 6), (self._keep, 3)),
            *((self._outcome, 1), (self._sweep, 1), (self._put, 6), (self._pause, 2)),
            *((self._move, 1), (self._force, 1), (self._gone, 2), (self._clear, 1)),
            *((self._delete, 1), (self._acquire, 8), (self._named, 3), (self._give_back, 3)),
            *((self._slot_release, 4), (self._update, 2), (self._reset, 2), (self._sync, 1)),
            *((self._confirm, 3), (self._restart, 1), (self._proxy_back, 3)),
            *((self._members, 1), (self._add, 3), (self._label, 3), (self._drain, 2)),
            *((self._resume, 1), (self._remove, 1), (self._import, 1), (self._tune, 2)),
            *((self._book, 3), (self._alter, 2), (self._cancel, 1)),
            (self._template, 3),
        )

    def first(self) -> list[Maker]:
        """Return the makers of the cases that set up the world."""
        pools = [self._put_of(name) for name in (*LIMITED, NATIVE)]
        return [self._config(FULL), *pools, *(self._add() for _ in range(3))]

    def cases(self) -> list[Maker]:
        """Return the makers of the cases of one batch, mostly of a single case."""
        kinds, weights = zip(*self._kinds, strict=True)
        size = self.dice.choice((1, 1, 1, 2, 3))
        return [kind() for kind in self.dice.choices(kinds, weights, k=size)]

    def fresh(self) -> LeaseId:
        """Return an id that no lease has."""
        return LeaseId(f"{next(self._ids):08d}{OWN}")

    def _chance(self, share: float) -> bool:
        return self.dice.random() < share

    def _leases(self, *states: str) -> list[Lease]:
        """Return the leases in some states, or all, in an order that depends only on the seed."""
        found = sorted(self.facts.leases.values(), key=lambda one: (one.arrival, one.state))
        return [one for one in found if not states or one.state in states]

    def _lease_id(self, *states: str, native: bool = False) -> LeaseId:
        """Return the id of such a lease; with `native`, of none that Boskos' clients poll for."""
        found = [one for one in self._leases(*states) if not (native and one.pull)]
        return self.dice.choice(found).id if found and self._chance(0.95) else self.fresh()

    def _held(self) -> LeaseId:
        """Return the id of a lease that a user of the native API has, if there is one."""
        found = [one.id for one in self._leases("granted") if not is_reserved(one.owner)]
        return self.dice.choice(found) if found and self._chance(0.9) else self._lease_id()

    def _proof(self, lease: LeaseId) -> Proof:
        found = self.facts.leases.get(lease)
        owner = "me" if found is None else found.owner
        token = None if found is None or self._chance(0.7) else found.token
        return Proof(self.dice.choice((owner, owner, owner, "you", None)), token)

    def _stead(self) -> OnBehalf | None:
        return self.dice.choice((None, OnBehalf(TESTER), OnBehalf(TESTER, "me")))

    def _needs(self) -> tuple[Need, ...]:
        pools = self.dice.sample(POOLS, self.dice.choice((1, 1, 1, 2)))
        if self._chance(0.1):
            pools[0] = self.dice.choice(MADE)
        return in_order(self._need(pool) for pool in pools)

    def _need(self, pool: str) -> Need:
        labels = self.dice.choice(LABELS) if pool not in LIMITED and self._chance(0.5) else {}
        return Need(pool, self.dice.choice((1, 1, 1, 2)), wanted=wanted_of(labels))

    # Cases of the native API.

    def _ask(self) -> Maker:
        dice, needs = self.dice, self._needs()
        owner = dice.choice(OWNERS)
        if owner == LEASE_PROXY:  # the lease proxy's clients name one pool
            needs = needs[:1]
        pull = owner != LEASE_PROXY and self._chance(0.2)
        ask = LeaseRequest(
            id=self.fresh(),
            owner=owner,
            key=f"k{dice.randrange(30)}",
            digest=f"{needs} {pull}",
            pull=pull,
            reopen=self._chance(0.2),
            attended=self._chance(0.5),
            needs=needs,
            priority=dice.choice((0, 0, 0, 1, -1)),
            ttl=dice.choice((None, None, 20 * SECOND, NEVER)),
            hold=dice.choice((None, None, 15 * SECOND)),
            patience=dice.choice((30, 300, 300)) * SECOND,
            forced=self._chance(0.05),
            roles=frozenset(dice.choice((("user",), ("user", "operator")))),
            group="" if is_reserved(owner) else dice.choice(("", "", "g", "h")),
            cancel_running=self._chance(0.5),
            booking=None if owner == LEASE_PROXY or self._chance(0.85) else self._booking(),
            borrow=5 * SECOND if self._chance(0.15) else None,
        )
        if owner != LEASE_PROXY and self._chance(0.25):
            ask = self._any_of(ask)
        wait = dice.choice((0, 0, 30 * SECOND))
        return partial(lease_cases.LeaseAcquire, LeaseId(""), request=ask, wait=wait, asker=TESTER)

    def _any_of(self, ask: LeaseRequest) -> LeaseRequest:
        """Return the same request for any of two or three needs, which may share some."""
        common, in_order = ask.needs if self._chance(0.2) else (), self._chance(0.3)
        drawn = dict.fromkeys(self._needs() for _ in range(self.dice.choice((2, 2, 3))))
        asked = structs.replace(ask, needs=common, digest=f"{common} {[*drawn]} {ask.pull}")
        return asked.any_of([*drawn], in_order=in_order)

    def _poll(self) -> Maker:
        lease = self._lease_id("waiting", native=True)
        found = self.facts.leases.get(lease)
        pull, wait = found is not None and found.pull, self.dice.choice((0, 30 * SECOND))
        return partial(lease_cases.LeasePoll, lease, wait=wait, scan=pull)

    def _leave(self) -> Maker:
        lease = self._lease_id("waiting", native=True)
        found = self.facts.leases.get(lease)
        until = None if found is None else found.heard_until
        scan = found is not None and (found.pull or found.attended)
        return partial(lease_cases.LeaseLeave, lease, until or Instant(0), scan=scan)

    def _renew(self) -> Maker:
        lease = self._lease_id("granted", "waiting", native=True)
        return partial(lease_cases.LeaseRenew, lease, self._proof(lease))

    def _release(self) -> Maker:
        lease = self._lease_id(*self.dice.choice((("granted",), ("waiting",), ())))
        return partial(lease_cases.LeaseRelease, lease, self._proof(lease), by=self._stead())

    def _revoke(self) -> Maker:
        return partial(ending.LeaseRevoke, self._lease_id(), "why", by=OnBehalf(TESTER))

    def _gone(self) -> Maker:
        lease = self._lease_id("granted", "ended")
        found = self.facts.leases.get(lease)
        pools = frozenset() if found is None else frozenset(need.pool for need in found.needs)
        by = OnBehalf(TESTER)
        return partial(ending.HolderGone, lease, "why", pools, by=by)

    def _clear(self) -> Maker:
        owner = self.dice.choice(("me", "you"))
        what = ending.Clearing(owner, ("waiting", "granted"), "why", TESTER)
        found = [one.id for one in self._leases("waiting", "granted")]
        return partial(ending.Clear, tuple(found[:3]), what)

    def _hold(self) -> Maker:
        lease = self._lease_id("granted", "waiting")
        hold = self.dice.choice((None, 5 * SECOND, 3_000 * SECOND))
        at_most = hold is not None and self._chance(0.5)
        known = (lease, self._proof(lease), hold, at_most)
        return partial(lease_cases.LeaseHold, *known, by=self._stead())

    def _retry(self) -> Maker:
        lease, fresh = self._lease_id("granted", "waiting"), self.fresh()
        found = self.facts.leases.get(lease)
        owner = "me" if found is None else found.owner
        key = f"k{self.dice.randrange(30)}"
        proof = self._proof(lease)
        requeue = self._chance(0.3)
        if requeue and found is not None and self._chance(0.5):
            key = found.key
        retry = (lease, owner, proof, key, TESTER, requeue)
        return partial(lease_cases.LeaseRetry, *retry, fresh=fresh)

    def _offer(self) -> Maker:
        lease, to = self._held(), self.dice.choice(("me", "you"))
        proof, case = self._proof(lease), handing_cases.LeaseOffer
        if self._chance(0.2):
            return partial(handing_cases.LeaseOfferWithdraw, lease, TESTER, proof)
        return partial(case, lease, TESTER, proof, to, 1_000 * SECOND)

    def _accept(self) -> Maker:
        """Answer an offer, or make one if there is none."""
        states = ("granted",) if self._chance(0.9) else ()
        offered = [one.id for one in self._leases(*states) if one.offer is not None]
        if not offered and self._chance(0.8):
            return self._offer()
        lease = self.dice.choice(offered) if offered else self._lease_id()
        found = self.facts.leases.get(lease)
        made = None if found is None else found.offer
        owner = "me" if made is None else made.to
        if self._chance(0.4):
            return partial(handing_cases.LeaseDecline, lease, TESTER, owner)
        key = f"k{self.dice.randrange(30)}" if self._chance(0.3) else self.fresh()
        how = (lease, TESTER, owner, key, {"a": "b"})
        return partial(handing_cases.LeaseAccept, *how, fresh=self.fresh())

    def _template(self) -> Maker:
        if self._chance(0.3):
            return partial(template_cases.TemplateDelete, "m/*", TESTER)
        spec = PoolSpec(limit=self.dice.choice((1, 2)), ttl=60 * SECOND, ttl_max=3_600 * SECOND)
        wish = TemplateWish(spec, idle=5 * SECOND, pools_max=self.dice.choice((1, 2)))
        return partial(template_cases.TemplatePut, "m/*", TESTER, wish, None)

    def _keep(self) -> Maker:
        lease = self._held()
        kept = (lease, self._proof(lease), None, 1_000 * SECOND, "why")
        return partial(handing_cases.LeaseKeep, *kept, by=self._stead())

    def _record(self) -> Maker:
        lease = self._lease_id("granted")
        found = self.facts.leases.get(lease)
        version = 0 if found is None else found.record_version
        record = (self._proof(lease), f'{{"n":{self.dice.randrange(3)}}}', version)
        return partial(lease_cases.LeaseRecord, lease, *record, by=self._stead())

    def _outcome(self) -> Maker:
        lease = self._lease_id()
        results: tuple[Result, ...] = ("ok", "failed")
        result = self.dice.choice(results)
        return partial(lease_cases.LeaseOutcome, lease, self._proof(lease), result, "", by=None)

    def _booking(self) -> BookingId | None:
        """Return the id of a booking that is not over."""
        return self.dice.choice((*sorted(self.facts.bookings), None))

    def _book(self) -> Maker:
        dice = self.dice
        start = time_of(Instant(self.facts.timeline.alive_at - self.facts.timeline.skew))
        start += timedelta(seconds=dice.choice((-5, 5, 20, 60)))
        needs = dice.sample(POOLS, dice.choice((1, 1, 2)))
        closure = self._chance(0.05)
        wanted = BookingWanted(
            needs=[BookedUnits(pool=pool, units=None if closure else 1) for pool in needs],
            key=f"b{dice.randrange(30)}",
            start=start,
            end=start + timedelta(seconds=dice.choice((10, 20, 40))),
            repeat=dice.choice((None, None, Repeat(every="day", count=2))),
            lead=dice.choice((0.0, 0.0, 5.0)),
            no_show=dice.choice((None, 7.0, 15.0)),
            closure=closure,
            force=self._chance(0.3),
        )
        owner = dice.choice(("me", "me", "you"))
        fresh = BookingId(self.fresh())
        return partial(booking_cases.BookingCreate, OPERATES, TESTER, fresh, owner, wanted)

    def _alter(self) -> Maker:
        pools = self.dice.sample(POOLS, 1) if self._chance(0.3) else []
        wanted = BookingChange(
            note=self.dice.choice(("a", "b")),
            force=self._chance(0.5),
            needs=[BookedUnits(pool=pool, units=1) for pool in pools] or None,
        )
        booking, named = self._booking() or BookingId(self.fresh()), frozenset(pools)
        return partial(booking_cases.BookingAlter, OPERATES, TESTER, booking, wanted, named)

    def _cancel(self) -> Maker:
        booking = self._booking() or BookingId(self.fresh())
        return partial(booking_cases.BookingCancel, OPERATES, TESTER, booking)

    def _sweep(self) -> Maker:
        leases = frozenset(self._lease_id() for _ in range(2))
        return partial(lease_cases.Sweep, pools=frozenset({self.dice.choice(POOLS)}), leases=leases)

    # Cases of operators.

    def _put(self) -> Maker:
        return self._put_of(self.dice.choice((*LIMITED, *POOLS)))

    def _put_of(self, name: str) -> Maker:
        dice = self.dice
        hold = dice.choice((None, None, 20 * SECOND))
        spec = PoolSpec(
            limit=dice.choice((1, 1, 2, 3)) if name in LIMITED else None,
            ttl=100 * SECOND,
            ttl_max=400 * SECOND,
            hold=hold,
            hold_max=dice.choice((None, hold)),
            cooldown=dice.choice((0, 0, 10 * SECOND)),
            lock_delay=dice.choice((0, 0, 25 * SECOND)),
            pacing=dice.choice((None, None, Pacing(interval=8 * SECOND, burst=2))),
            quota=dice.choice((None, 1, 2)),
            queue_max=dice.choice((10_000, 4)),
            queue_max_per_owner=dice.choice((None, 1, 2)),
            on_retry=dice.choice(("keep", "keep", "requeue")),
            expire=dice.choice(("free", "free", "keep")),
            proxy_ttl=dice.choice((None, 30 * SECOND)),
            native_slots=name == NATIVE,
        )
        paced = self._chance(0.2)
        put = partial(pool_cases.PoolPut, name=name, by=TESTER, spec=spec)
        return partial(put, generation=None, paced=paced)

    def _members(self) -> Maker:
        return partial(pool_cases.MembersCounted, "reporters")

    def _pause(self) -> Maker:
        name, paused = self.dice.choice(POOLS), self._chance(0.3)
        lasts = self.dice.choice((None, 30 * SECOND)) if paused else None
        return partial(pool_cases.PoolPause, name=name, by=TESTER, paused=paused, lasts=lasts)

    def _tune(self) -> Maker:
        pacing = self.dice.choice((None, None, Pacing(interval=8 * SECOND, burst=2)))
        name, limit = self.dice.choice(LIMITED), self.dice.choice((None, 1, 2, 3))
        return partial(pool_cases.PoolTune, name=name, by=TESTER, limit=limit, pacing=pacing)

    def _move(self) -> Maker:
        lease, priority = self._lease_id("waiting"), self.dice.choice((None, None, 0, 2))
        return partial(lease_cases.TicketMove, lease, priority=priority, by=OnBehalf(TESTER))

    def _force(self) -> Maker:
        return partial(lease_cases.TicketForce, self._lease_id("waiting"), by=OnBehalf(TESTER))

    def _delete(self) -> Maker:
        return partial(pool_cases.PoolDelete, name=self.dice.choice(POOLS), by=TESTER)

    def _add(self) -> Maker:
        names = self.dice.sample(NATIVE_NAMES, self.dice.choice((1, 2)))
        labels = self.dice.choice(LABELS)
        return partial(slots.SlotsAdd, NATIVE, names, labels, TESTER)

    def _chosen(self) -> tuple[str, str, Actor]:
        """Return the pool and the name of a slot, mostly one that exists, and who changes it."""
        slot = self._slot(held=self._chance(0.5))
        if slot is None or self._chance(0.05):
            return self.dice.choice(POOLS), "none", TESTER
        return slot.pool, slot.name, TESTER

    def _label(self) -> Maker:
        return partial(slots.SlotLabel, *self._chosen(), self.dice.choice(LABELS))

    def _drain(self) -> Maker:
        return partial(slots.SlotDrain, *self._chosen(), self._chance(0.5), "why")

    def _resume(self) -> Maker:
        drained = [one for one in self.facts.slots_of(sorted(self.facts.slots)) if one.drain]
        chosen = [(one.pool, one.name, TESTER) for one in drained] or [self._chosen()]
        return partial(slots.SlotResume, *self.dice.choice(sorted(chosen, key=str)))

    def _remove(self) -> Maker:
        return partial(slots.SlotRemove, NATIVE, self.dice.choice(NATIVE_NAMES), TESTER)

    def _sync(self) -> Maker:
        return self._config(self.dice.choice((FULL, FULL, OTHER)))

    def _config(self, config: SlotConfig) -> Maker:
        slotted = {name for name, pool in self.facts.pools.items() if pool.spec.limit is None}
        seed = str(next(self._ids))
        return partial(boskos_cases.Sync, config, config.pools | slotted, seed, not self._strict)

    # Cases of Boskos and the lease proxy.

    def _slot(self, *, held: bool) -> Slot | None:
        slots = self.facts.slots_of(sorted(self.facts.slots))
        found = [slot for slot in slots if bool(slot.owner) is held]
        found.sort(key=lambda one: (one.pool, one.name))
        return self.dice.choice(found) if found else None

    def _acquire(self) -> Maker:
        dice = self.dice
        pool = dice.choice((*SLOTTED, *SLOTTED, GROWING))
        request = dice.choice(("", "1", "2"))
        kind = (pool, dice.choice(STATES), dice.choice(("busy", "leased")), dice.choice(CLIENTS))
        wish = AcquireRequest(*kind, request, self.fresh(), f"made-{next(self._ids)}")
        acquire = boskos_strict_cases.AcquireStrict if self._strict else boskos_cases.Acquire
        return partial(acquire, wish)

    def _named(self) -> Maker:
        names = sorted(self.dice.sample(NAMES, self.dice.choice((1, 2))))
        state, owner = self.dice.choice(STATES), self.dice.choice(CLIENTS)
        wish = AcquireRequest("", state, "busy", owner, "", LeaseId(""), "")
        fresh = [self.fresh() for _ in names]
        if self._strict:
            return partial(boskos_strict_cases.TakeNamed, wish, names, fresh)
        return partial(boskos_cases.AcquireNamed, wish, names, fresh)

    def _holder(self) -> tuple[str, str, str, bool]:
        """Return a slot's name, an owner and a state, mostly those of the slot, and `native`."""
        slot = self._slot(held=self._chance(0.9))
        wrong = slot is None or self._chance(0.1)
        name = "none" if slot is None else slot.name
        owner, state = ("eve", "odd") if wrong or slot is None else (slot.owner, slot.state)
        return name, owner, state, self._chance(0.5)

    def _slot_release(self) -> Maker:
        name, owner, _, native = self._holder()
        return partial(boskos_cases.Release, name, owner, native, self.dice.choice(STATES), TESTER)

    def _update(self) -> Maker:
        name, owner, state, native = self._holder()
        data = {"n": str(self.dice.randrange(3))}
        return partial(boskos_cases.Update, name, owner, native, state, data)

    def _reset(self) -> Maker:
        pool, state = self.dice.choice(SLOTTED), self.dice.choice(("busy", "leased"))
        expire = self.dice.choice((0, 20, 60)) * 1_000_000_000
        native = self._chance(0.5)
        return partial(boskos_cases.Reset, pool, state, expire, "dirty", native, TESTER)

    def _import(self) -> Maker:
        """Take over resources, some of which are slots of other pools."""
        dice, pool = self.dice, self.dice.choice((*SLOTTED, GROWING))
        names = dice.sample((*NAMES, *NATIVE_NAMES[:1], "new"), 2)
        resources = [
            Resource(
                name,
                dice.choice(STATES),
                dice.choice(("", *CLIENTS)),
                {},
                Instant(dice.randrange(100) * SECOND),
                None,
            )
            for name in names
        ]
        fresh = [self.fresh() for _ in names]
        return partial(boskos_cases.ImportResources, pool, resources, fresh, TESTER)

    def _confirm(self) -> Maker:
        mine = [one.id for one in self._leases("granted") if one.attended]
        if self._chance(0.5):
            return partial(LeasesConfirm, mine[:3] or [self.fresh()])
        return partial(LeaseUndelivered, self.dice.choice(mine or [self.fresh()]))

    def _restart(self) -> Maker:
        return partial(TicketsLeft, [one.id for one in self._leases("waiting")][:3])

    def _give_back(self) -> Maker:
        """Release a slot by its name, whichever client occupies it."""
        slot = self._slot(held=self._chance(0.8))
        return partial(GiveBack, "none" if slot is None else slot.name)

    def _proxy_back(self) -> Maker:
        """Release a unit of a lease of the proxy."""
        mine = [one for one in self._leases() if one.owner == LEASE_PROXY]
        names = names_of(self.dice.choice(mine)) if mine else []
        return partial(GiveBack, self.dice.choice(names or ["none"]))
