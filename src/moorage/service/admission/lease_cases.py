"""The cases of leases and tickets: the keys that each needs, and the rule that decides it.

Those of operators leave an audit row.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, overload

from msgspec import json, structs, to_builtins

from moorage.core.admission import bounds, expiry, leases, operator_actions, requests
from moorage.core.admission.bars import waits_until
from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.admission.facts import Facts
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.model import Lease, Result
from moorage.core.admission.requests import LeaseRequest, Proof, request_again
from moorage.core.admission.superseding import group_key
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.ledger.allocations import keys_for
from moorage.core.service_time import When
from moorage.service.access.roles import standing
from moorage.service.admission.pool_cases import adapted_rows, pause_shown
from moorage.service.admission.views import LeaseView
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.import_room import check_imported
from moorage.service.batch.ledger_share import holding_of, request_from
from moorage.service.batch.use_case import AuditedUseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.ids import lease_id_new
from moorage.store.access.audit import AuditRow
from moorage.wire.labels import DESCRIBING

Others = Callable[[LeaseId], Instant | None]
"""The deadline of a ticket because of clients of this process that wait for it; None: none does.
A shorter poll of another client must not shorten that of a pull ticket."""


Elsewhere = Callable[[Lease, When], Instant | None]
"""The deadline of a ticket because of clients that seem to wait for it at another process."""


def nowhere(_ticket: Lease, _when: When) -> None:
    """There is no other process."""


def nobody(_ticket: LeaseId) -> None:
    """Nobody else waits for a ticket."""


@dataclass(frozen=True, slots=True)
class OnBehalf:
    """A caller that may act on behalf of a lease's holder, which leaves an audit row.

    `own` is the caller's own name as an owner, for whose leases no row is left; None: it has none.
    """

    actor: Actor
    own: str | None = None


@dataclass(slots=True)
class LeaseCase(AuditedUseCase[LeaseView]):
    """A case about one lease; `lease` is its id, after the decision the id of the answer's lease.

    `by` is the caller that acts on behalf of the holder; None: the holder itself.
    """

    lease: LeaseId
    by: OnBehalf | None = field(default=None, kw_only=True)

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(leases={self.lease}))

    def conclude(self, world: World, when: When) -> LeaseView:
        return LeaseView(world.admission.leases[self.lease], when)

    def leave(
        self, action: str, before: Lease | None, changes: AdmissionChanges, when: When, **after: Any
    ) -> None:
        """Set the audit row, if this acts on behalf of another holder and changes anything."""
        self.rows = []
        by = self.by
        if by is None or before is None or before.owner == by.own or not changes.leases:
            return
        shown = {"owner": before.owner, "key": before.key, "state": before.state}
        row = audit_entry(when.wall, by.actor, action, before.id, shown, after or None)
        self.rows = [row]


UNNAMED = Actor("", None, "")


@dataclass(slots=True)
class LeaseAcquire(LeaseCase):
    """Request units; with `wait` the ticket counts as polled for that long (microseconds)."""

    is_followed: ClassVar[bool] = True
    request: LeaseRequest
    wait: int = 0
    asker: Actor = field(default=UNNAMED, kw_only=True)
    """The caller: a forced grant leaves an audit row, as does what a request supersedes."""
    others: Others = field(default=nobody, kw_only=True)
    elsewhere: Elsewhere = field(default=nowhere, kw_only=True)
    until: Instant = field(init=False, repr=False)
    """`heard_until` of the ticket in alive time, set by the decision."""
    kept: Instant | None = field(default=None, init=False)
    """Below this the client must not lower it when it leaves."""

    def keys(self) -> Keys:
        request = self.request
        pools = {need.pool for need in request.needs}
        asked = AdmissionKeys(
            pools=pools,
            asked={(request.owner, request.key)},
            groups={group_key(request.owner, request.group)} if request.group else set(),
            makable={*pools},
            waiters=_waiters(request.owner, request.roles),
            bookings=set() if request.booking is None else {request.booking},
        )
        if request.allocations is None:
            return Keys(admission=asked)
        return Keys(keys_for([request_from(request.allocations)]), asked)

    def decide(self, world: World, when: When) -> Changes:
        facts, request = world.admission, self.request
        self.until = waits_until(
            when.moment, self.wait, request.patience, pull=request.pull, attended=request.attended
        )
        request = request.heard(self.until)
        changes, self.lease = leases.acquire(facts, when.moment, request, when.wall)
        if changes.leases and request.allocations is not None:
            check_imported(world)  # a ticket that waits already may be asked for again
        if not changes.leases:  # a repeated request
            self.kept = self.elsewhere(facts.leases[self.lease], when)
            until = _latest(self.until, _latest(self.kept, self.others(self.lease)))
            changes, _ = leases.repeat(facts, when.moment, self.lease, until)
        self.rows = []
        if changes.leases and request.forced:
            self.rows = [_forced_row(when, self.asker, self.lease, request)]
        for name, made in changes.pools.items():
            if made is not None and made.on_demand is not None and name not in facts.pools:
                template = made.on_demand.template
                row = audit_entry(when.wall, self.asker, "pool.make", name, after=template)
                self.rows.append(row)
        if changes.leases and request.group:
            self.rows += self._superseded_rows(facts, when, changes)
        return Changes(admission=changes)

    def _superseded_rows(
        self, facts: Facts, when: When, changes: AdmissionChanges
    ) -> list[AuditRow]:
        """Return the audit row of a request that ends others of its group, or has them stop."""
        ended, stopping = [], []
        for key, other in changes.leases.items():
            if other is None or other.superseded_by != self.lease:
                continue
            if other.state == "ended":
                ended.append(key)
            elif other.stop_until != facts.leases[key].stop_until:
                stopping.append(key)
        if not (ended or stopping):
            return []
        shown = {"group": self.request.group, "ended": ended, "asked_to_stop": stopping}
        return [audit_entry(when.wall, self.asker, "lease.supersede", self.lease, after=shown)]


def identified(request: LeaseRequest, roles: frozenset[str]) -> LeaseRequest:
    """Return a request with the id of its lease, its digest, and the roles of its caller."""
    return structs.replace(request, id=lease_id_new(), digest=digest_of(request), roles=roles)


def digest_of(request: LeaseRequest) -> str:
    """Return the digest of a request: a key stands for the request that first came with it.

    Not of the key, so that a client can repeat a retry's request with the retry's new key. Nor of
    the labels that describe the caller: another process that continues an attempt has its own host,
    user and process id.
    """
    labels = {name: text for name, text in request.labels.items() if name not in DESCRIBING}
    allocations = None if request.allocations is None else holding_of(request.allocations)
    # What is not asked for is left out, so that keys which are older than it are still known.
    grouped = {"group": request.group, "cancel_running": request.cancel_running}
    asked = {
        **(grouped if request.group else {}),
        "owner": request.owner,
        "needs": to_builtins(request.needs),
        "ttl": request.ttl,
        "hold": request.hold,
        "priority": request.priority,
        "labels": dict(sorted(labels.items())),
        "patience": request.patience,
        "force": request.forced,
        "pull": request.pull,
        "allocations": to_builtins(allocations, order="deterministic"),
    }
    if request.alternatives:
        asked["any_of"] = to_builtins(request.alternatives)
        asked["in_order"] = request.in_order
    for name in ("preemptible", "booking", "borrow"):
        if (one := getattr(request, name)) is not None:
            asked[name] = one
    return _digest(asked)


def _digest(asked: dict[str, Any]) -> str:
    return hashlib.sha256(json.encode(asked)).hexdigest()


@dataclass(slots=True)
class LeasePoll(LeaseCase):
    """Poll a ticket, whose client waits for another `wait` microseconds.

    A poll of a pull ticket, or of a forced one, may lead to a grant (`scan`).
    """

    wait: int = 0
    scan: bool = False
    others: Others = field(default=nobody, kw_only=True)
    elsewhere: Elsewhere = field(default=nowhere, kw_only=True)
    until: Instant = field(init=False, repr=False)
    """`heard_until` of the ticket in alive time, set by the decision."""
    kept: Instant | None = field(default=None, init=False)
    """Below this the client must not lower it when it leaves."""

    def keys(self) -> Keys:
        return Keys(admission=_keys_of(self.lease, self.scan))

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        found = facts.leases.get(self.lease)
        self.until = Instant(when.moment.alive + self.wait)
        if found is not None:
            self.until = waits_until(
                when.moment, self.wait, found.patience, pull=found.pull, attended=found.attended
            )
        self.kept = None if found is None else self.elsewhere(found, when)
        until = _latest(self.until, _latest(self.kept, self.others(self.lease)))
        changes, self.lease = leases.poll(facts, when.moment, self.lease, until)
        return Changes(admission=changes)


@dataclass(slots=True)
class LeaseLeave(LeaseCase):
    """Shorten a ticket's `heard_until` to its patience, because the client has disconnected.

    `until` is the value that the client had set (alive time). If the ticket has another one now,
    another client polls it, and nothing changes. `others` is the value because of clients of this
    process that still wait for it; None: there are none. If no request waits any more for a ticket
    that is then passed over (`scan`), others may be granted the units that were set aside for it.
    """

    until: Instant
    others: Instant | None = None
    scan: bool = False

    def keys(self) -> Keys:
        return Keys(admission=_keys_of(self.lease, self.scan))

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        found = facts.leases.get(self.lease)
        if found is not None and found.heard_until != self.until:
            return Changes()
        changes, self.lease = leases.leave(facts, when.moment, self.lease, self.others)
        return Changes(admission=changes)


@dataclass(slots=True)
class LeaseRenew(LeaseCase):
    """Renew a lease: it lasts for another TTL."""

    proof: Proof

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(heard={self.lease}))

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        changes, self.lease = leases.renew(facts, when.moment, self.lease, self.proof)
        return Changes(admission=changes)


@dataclass(slots=True)
class LeaseRelease(LeaseCase):
    """Release a lease, or withdraw a ticket.

    `who`: the caller by name, whom the clients hear of that wait with a ticket. `version` is that
    of the record, None: any. `gave_up`: the client of a ticket has waited for as long as it would.
    """

    proof: Proof
    who: str = ""
    version: int | None = None
    gave_up: bool = False

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        before = facts.leases.get(self.lease)
        changes, self.lease = leases.release(
            facts,
            when.moment,
            when.wall,
            self.lease,
            self.proof,
            "gave_up" if self.gave_up else "released",
            detail=self._detail(before),
            version=self.version,
        )
        self.leave("lease.release", before, changes, when)
        return Changes(admission=changes)

    def _detail(self, before: Lease | None) -> str:
        waits = before is not None and before.state == "waiting"
        return f"by {self.who}" if waits and self.who else ""


@dataclass(slots=True)
class LeaseHold(LeaseCase):
    """Change the end of a lease's hold: `hold` microseconds from now; None: no end.

    `at_most`: an earlier end stays.
    """

    proof: Proof
    hold: int | None
    at_most: bool = False

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        before = facts.leases.get(self.lease)
        changes, self.lease = leases.hold(
            facts, when.moment, self.lease, self.proof, self.hold, at_most=self.at_most
        )
        seconds = None if self.hold is None else self.hold / SECOND
        self.leave("lease.hold", before, changes, when, hold=seconds)
        return Changes(admission=changes)


@dataclass(slots=True)
class LeaseRecord(LeaseCase):
    """Write the record of a lease, which is an object as JSON, in place of another version."""

    proof: Proof
    record: str
    version: int

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(heard={self.lease}))

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        before = facts.leases.get(self.lease)
        changes, self.lease = leases.record(
            facts, when.moment, self.lease, self.proof, self.record, self.version
        )
        self.leave("lease.record", before, changes, when, version=self.version)
        return Changes(admission=changes)


@dataclass(slots=True)
class LeaseRetry(LeaseCase):
    """Release a lease and request the same again in one step, with a new key and a new id.

    `lease` is the one to release, of this `owner`.
    """

    owner: str
    proof: Proof
    key: str
    caller: Actor
    """The author of the retry; retrying a forced lease leaves another audit row."""
    requeue: bool = False
    version: int | None = None
    """The version that the record must have; None: any."""
    fresh: LeaseId = field(default_factory=lease_id_new)
    """The id of the new lease."""
    old: LeaseId = field(init=False)

    def __post_init__(self) -> None:
        self.old = self.lease

    def keys(self) -> Keys:
        asked = {(self.owner, self.key)}
        waiters = _waiters(self.owner, standing(self.caller.role))
        return Keys(admission=AdmissionKeys(leases={self.old}, asked=asked, waiters=waiters))

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        old = facts.leases.get(self.old)
        if old is None:
            raise Error(Code.LEASE_NOT_FOUND, requests.unknown_message(self.old))
        until = Instant(when.moment.alive + old.patience)
        request = request_again(old, self.fresh, self.key, standing(self.caller.role))
        request = request.heard(until)
        if self.by is not None and self.by.own != old.owner:  # the answer does not reach the holder
            request = structs.replace(request, attended=False)
        how = leases.Retry(request, self.requeue, self.version)
        changes, self.lease = leases.retry(facts, when.moment, when.wall, self.old, self.proof, how)
        self.leave("lease.retry", old, changes, when, lease=self.lease, key=self.key)
        if request.forced and changes.leases:
            self.rows.append(_forced_row(when, self.caller, self.lease, request))
        return Changes(admission=changes)


@dataclass(slots=True)
class LeaseOutcome(LeaseCase):
    """Record the outcome of what the holder started."""

    proof: Proof
    result: Result
    detail: str
    cause: str = ""

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        before = facts.leases.get(self.lease)
        changes, self.lease = leases.outcome(
            facts,
            when.moment,
            self.lease,
            self.proof,
            self.result,
            self.detail,
            cause=self.cause,
        )
        shown = {"result": self.result, "detail": self.detail}
        self.leave("lease.outcome", before, changes, when, **shown)
        self.rows += adapted_rows(facts, changes, when)
        return Changes(admission=changes)


SERVER = Actor("moorage", None, "")
"""The author of what time alone brings, such as the end of a pause."""


@dataclass(slots=True)
class Sweep(AuditedUseCase[bool]):
    """End the leases and tickets that are due at `due` (service time), and grant what is possible.

    Pauses that have reached their end are over, which leaves audit rows. Grants are tried in the
    pools that are due to wake then, in `pools`, and in `calendars`, whose bookings follow the wall
    clock; idle ones that were made on demand go. `leases` are ended if they are due at the time of
    the batch. The answer is whether anything moved: a lease was ended or postponed, a due pool is
    gone or wakes at another time.
    """

    due: Instant | None = None
    pools: frozenset[str] = frozenset()
    leases: frozenset[LeaseId] = frozenset()
    calendars: frozenset[str] = frozenset()
    found: bool = False
    wakes: dict[str, Instant | None] = field(default_factory=dict)
    """When the loaded pools were to wake."""

    def keys(self) -> Keys:
        return Keys(
            admission=AdmissionKeys(
                due=self.due,
                pools=set(self.pools),
                leases=set(self.leases),
                calendars=set(self.calendars),
            )
        )

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        made, _ = expiry.sweep(facts, when.moment, when.wall, [*facts.due, *self.leases])
        self.found = bool(made)
        self.wakes = {name: pool.wake_at for name, pool in facts.pools.items()}
        self.rows = [
            audit_entry(when.wall, SERVER, "pool.resume", name, pause_shown(before, when), False)
            for name, pool in sorted(made.pools.items())
            if (before := facts.pools[name]).paused and pool is not None and not pool.paused
        ]
        return Changes(admission=made)

    def conclude(self, world: World, when: When) -> bool:
        return self.found or any(
            at is not None
            and at <= when.moment.at
            and ((pool := world.admission.pools.get(name)) is None or pool.wake_at != at)
            for name, at in self.wakes.items()
        )


@overload
def _latest(one: Instant, other: Instant | None) -> Instant: ...
@overload
def _latest(one: Instant | None, other: Instant | None) -> Instant | None: ...
def _latest(one: Instant | None, other: Instant | None) -> Instant | None:
    return max((until for until in (one, other) if until is not None), default=None)


def _waiters(owner: str, roles: frozenset[str]) -> set[str]:
    return {owner} if bounds.is_bounded(owner, roles) else set()


def _keys_of(lease: LeaseId, scan: bool) -> AdmissionKeys:
    """Return the keys of a poll: with the pools of the ticket if its lines are to be scanned."""
    return AdmissionKeys(leases={lease}) if scan else AdmissionKeys(heard={lease})


def _forced_row(when: When, by: Actor, lease: LeaseId, request: LeaseRequest) -> AuditRow:
    """Return the audit row of a lease that occupies units regardless of the limits."""
    needs = {need.pool: need.units for need in request.needs}
    return audit_entry(when.wall, by, "lease.force", lease, after=needs)


@dataclass(slots=True)
class TicketMove(LeaseCase):
    """Give a ticket another priority; None: make it the first in all its lines."""

    priority: int | None

    def keys(self) -> Keys:
        heads = {self.lease} if self.priority is None else set()
        return Keys(admission=AdmissionKeys(leases={self.lease}, heads=heads))

    def decide(self, world: World, when: When) -> Changes:
        before = world.admission.leases.get(self.lease)
        changes, _ = operator_actions.move(world.admission, self.lease, self.priority)
        _leave_moved(self, "lease.move", before, changes, when)
        return Changes(admission=changes)


@dataclass(slots=True)
class TicketForce(LeaseCase):
    """Grant a waiting ticket regardless of the limits of its pools."""

    def decide(self, world: World, when: When) -> Changes:
        before = world.admission.leases.get(self.lease)
        changes, _ = operator_actions.force(world.admission, when.moment, self.lease)
        _leave_moved(self, "lease.force", before, changes, when)
        return Changes(admission=changes)


def _leave_moved(
    case: LeaseCase, action: str, before: Lease | None, changes: AdmissionChanges, when: When
) -> None:
    """Set the audit row of a decision, unless it changes nothing."""
    case.rows = []
    after = changes.leases.get(case.lease)
    if case.by is None or before is None or after is None:
        return
    known = {"owner": before.owner, "key": before.key}
    row = audit_entry(
        when.wall,
        case.by.actor,
        action,
        case.lease,
        known | _moved_shown(before),
        _moved_shown(after),
    )
    case.rows = [row]


def _moved_shown(lease: Lease) -> dict[str, Any]:
    needs = {need.pool: need.units for need in lease.needs}
    shown = {"priority": lease.priority, "forced": lease.forced, "needs": needs}
    if lease.alternatives:
        shown["any_of"] = [{need.pool: need.units for need in one} for one in lease.alternatives]
    return shown
