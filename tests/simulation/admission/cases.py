"""The simulator's calls as use cases of the service, and stored values as the simulator's."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from msgspec import structs

from moorage.core.admission.booking_model import Window
from moorage.core.admission.calendar import bookings
from moorage.core.admission.facts import Changes
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.model import Lease, Need, PoolSpec, Slot
from moorage.core.admission.requests import LeaseRequest, Proof
from moorage.core.admission.templates import TemplateWish
from moorage.core.clock import SECOND
from moorage.core.ids import BookingId, ConsumerId, LeaseId, ProviderId
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.service_time import When
from moorage.service.admission import (
    booking_cases,
    ending,
    handing_cases,
    lease_cases,
    pool_cases,
    template_cases,
)
from moorage.service.app import Service
from moorage.service.audit_entries import Actor
from moorage.service.batch.ledger_share import LeaseAllocations, request_from, text_of
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import Changes as AllChanges
from moorage.service.batch.world import Keys, World
from moorage.service.ledger import provider_cases
from moorage.wire.pools.bookings import BookedUnits, BookingChange, BookingWanted
from tests.simulation.admission import calls as do
from tests.simulation.admission.memory import Memory
from tests.simulation.admission.server import POOLS_MAX, booker, pool_put, windows_of

CLASSES = frozenset({"VCPU"})
OPERATOR = Actor("operator", None, "operator")
USER = Actor("user", None, "user")
EPOCH = datetime.fromtimestamp(0, UTC)
PROVIDER = ProviderId("00000000-aaaa-4aaa-8aaa-aaaaaaaaaaaa")


@dataclass(slots=True)
class SlottedPut(UseCase[None]):
    """Make a pool with these slots, as a Boskos configuration does."""

    name: str
    spec: PoolSpec
    slots: list[Slot] = field(default_factory=list)

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(pools={self.name}))

    def decide(self, world: World, when: When) -> AllChanges:
        changes, _ = pool_put(world.admission, when.moment, when.wall, self.name, self.spec)
        changes.slots |= {(slot.pool, slot.name): slot for slot in self.slots}
        return AllChanges(admission=changes)

    def conclude(self, world: World, when: When) -> None:
        """Do nothing."""


@dataclass(slots=True)
class SeveralWindows(booking_cases.BookingAlter):
    """Give a booking these units and windows, which need not be a series."""

    needs: tuple[Need, ...] = ()
    windows: tuple[Window, ...] = ()

    def decide(self, world: World, when: When) -> AllChanges:
        before = bookings.booking_of(world.admission, self.booking, self.by)
        after = structs.replace(before, needs=self.needs, windows=self.windows)
        changes, _ = bookings.change(world.admission, when.moment.at, after, self.by)
        self.leave("booking.change", world, changes, when)
        return AllChanges(admission=changes)


async def provider_make(service: Service, capacity: int) -> None:
    """Create the provider whose capacity leases with allocations share."""
    await service.transactor.submit(provider_cases.ProviderCreate(PROVIDER, "host"))
    offer = {"VCPU": InventorySpec(capacity)}
    await service.transactor.submit(provider_cases.InventoriesReplace(PROVIDER, 0, offer))


def case_of(call: do.Call, memory: Memory, new_id: Callable[[], LeaseId]) -> UseCase[Any]:
    """Return the use case for a call."""
    match call:
        case do.Ask():
            request = _ask(call, new_id())
            return lease_cases.LeaseAcquire(LeaseId(""), request=request, asker=OPERATOR)
        case do.Poll(lease):
            return lease_cases.LeasePoll(lease, scan=True)
        case do.Renew(lease, owner, token):
            return lease_cases.LeaseRenew(lease, Proof(owner, token))
        case do.Release(lease, owner, token):
            return lease_cases.LeaseRelease(lease, Proof(owner, token))
        case do.Revoke(lease):
            return ending.LeaseRevoke(lease, "", by=lease_cases.OnBehalf(OPERATOR))
        case do.Move(lease, _, _, priority):
            return lease_cases.TicketMove(lease, priority, by=lease_cases.OnBehalf(OPERATOR))
        case do.Force(lease):
            return lease_cases.TicketForce(lease, by=lease_cases.OnBehalf(OPERATOR))
        case do.Hold(lease, owner, token, hold, at_most):
            return lease_cases.LeaseHold(lease, Proof(owner, token), hold, at_most)
        case do.Keep(lease, owner, token, wanted):
            return handing_cases.LeaseKeep(lease, Proof(owner, token), None, wanted, "")
        case do.Offer(lease, owner, token, to, lasts):
            proof = Proof(owner, token)
            return handing_cases.LeaseOffer(lease, OPERATOR, proof, to, lasts)
        case do.Withdraw(lease, owner, token):
            return handing_cases.LeaseOfferWithdraw(lease, OPERATOR, Proof(owner, token))
        case do.Accept(lease, owner, key):
            return handing_cases.LeaseAccept(lease, USER, owner, key, {}, fresh=new_id())
        case do.Decline(lease, owner):
            return handing_cases.LeaseDecline(lease, USER, owner)
        case do.Retry(lease, owner, token, ask):
            proof = Proof(owner, token)
            return lease_cases.LeaseRetry(
                lease, ask.owner, proof, ask.key, OPERATOR, fresh=new_id()
            )
        case do.Report(lease, owner, token, result):
            return lease_cases.LeaseOutcome(lease, Proof(owner, token), result, "")
        case do.Book() | do.Rebook() | do.Unbook():
            return _booking_case(call, BookingId(new_id()))
    return _pool_case(call, memory)


def _booking_case(call: do.Book | do.Rebook | do.Unbook, fresh: BookingId) -> UseCase[Any]:
    by, actor = booker(call), OPERATOR if call.owner is None else USER
    if isinstance(call, do.Unbook):
        return booking_cases.BookingCancel(by, actor, call.booking)
    (start, end), *more = call.windows
    first = {"start": _time(start), "end": _time(end)}
    needs = [BookedUnits(pool=need.pool, units=need.units or None) for need in call.needs]
    if isinstance(call, do.Book):
        wanted = BookingWanted(
            needs=needs,
            key=call.key,
            **first,
            lead=call.lead / SECOND,
            no_show=None if call.no_show is None else call.no_show / SECOND,
            closure=call.closure,
            force=call.forced,
        )
        case = booking_cases.BookingCreate(by, actor, fresh, call.owner, wanted)
        windows = windows_of(call.windows)
        case.made = structs.replace(case.made, windows=windows, digest=repr(call))
        return case
    pools = frozenset(need.pool for need in call.needs)
    change = BookingChange(needs=needs, **first)
    if more:
        windows = windows_of(call.windows)
        return SeveralWindows(by, actor, call.booking, change, pools, call.needs, windows)
    return booking_cases.BookingAlter(by, actor, call.booking, change, pools)


def _time(at: int) -> datetime:
    return EPOCH + timedelta(microseconds=at)


def _pool_case(call: do.Call, memory: Memory) -> UseCase[Any]:
    match call:
        case do.PoolPut(name, spec) if spec.limit is None and name not in memory.pools:
            return SlottedPut(name, spec, list(memory.slots[name].values()))
        case do.PoolPut(name, spec):
            return pool_cases.PoolPut(name=name, by=OPERATOR, spec=spec, generation=None)
        case do.TemplatePut(name, spec, idle):
            wish = TemplateWish(spec, idle, POOLS_MAX)
            return template_cases.TemplatePut(name=name, by=OPERATOR, wish=wish, generation=None)
        case do.PoolPause(name, paused, lasts):
            return pool_cases.PoolPause(name=name, by=OPERATOR, paused=paused, lasts=lasts)
        case do.PoolDelete(name):
            return pool_cases.PoolDelete(name=name, by=OPERATOR)
    raise AssertionError(call)


def _ask(ask: do.Ask, lease: LeaseId) -> LeaseRequest:
    return LeaseRequest(
        id=lease,
        owner=ask.owner,
        key=ask.key,
        digest=repr(structs_of(ask)),
        needs=ask.needs,
        priority=ask.priority,
        ttl=ask.ttl,
        hold=ask.hold,
        patience=ask.patience,
        forced=ask.forced,
        allocations=None if ask.allocations is None else _holding(ask),
        group=ask.group,
        cancel_running=ask.cancel_running,
        preemptible=ask.preemptible,
        booking=ask.booking,
        borrow=ask.borrow,
    ).any_of(ask.any_of, in_order=ask.in_order)


def structs_of(ask: do.Ask) -> tuple[Any, ...]:
    """Return a request without its key."""
    asked = (*ask.options, ask.in_order, ask.preemptible, ask.booking, ask.borrow)
    return (ask.owner, asked, ask.priority, ask.ttl, ask.hold, ask.patience, ask.group)


def _holding(ask: do.Ask) -> str:
    consumer = ConsumerId(str(uuid5(NAMESPACE_URL, f"{ask.owner}/{ask.key}")))
    amounts = {PROVIDER: {"VCPU": int(ask.allocations or 0)}}
    return text_of(LeaseAllocations(consumer, amounts, "project", "user", "INSTANCE"))


def plain(changes: Changes) -> Changes:
    """Return changes with the leases' allocations as a number."""
    leases = {
        key: None if lease is None else plain_lease(lease) for key, lease in changes.leases.items()
    }
    return Changes(
        pools=dict(changes.pools),
        leases=leases,
        slots=dict(changes.slots),
        templates=dict(changes.templates),
        bookings=dict(changes.bookings),
        outcomes=list(changes.outcomes),
        heard=dict(changes.heard),
        postponed=set(changes.postponed),
        arrivals=changes.arrivals,
    )


def plain_lease(lease: Lease) -> Lease:
    """Return a lease with its allocations as a number."""
    if lease.allocations is None:
        return lease
    request = request_from(lease.allocations)
    amount = sum(sum(amounts.values()) for amounts in request.allocations.values())
    return structs.replace(lease, allocations=str(amount))
