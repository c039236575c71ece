"""Actions that are tried first: what one would do now, and doing exactly that.

A trial is a batch that is not saved: the same code loads, decides and grants. An action carries the
digest of the trial that its author has seen, and is refused if it would do something else by now.
Source: docs/decisions/0059-actions-are-tried-first.md.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, ClassVar, NamedTuple

import msgspec

from moorage.core.admission.forecast.effects import Effect, effect_of
from moorage.core.admission.model import Lease, Pool, units_held_since
from moorage.core.admission.units import free_units, limit_of, units_by_pool
from moorage.core.ages import age_text
from moorage.core.clock import SECOND, Instant
from moorage.core.counting import are, counted
from moorage.core.errors import Code, Error
from moorage.core.fleet.model import Agent
from moorage.core.ids import AgentId, LeaseId
from moorage.core.ledger.capacity import capacity_of
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.service_time import When
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.ids import audit_id_new
from moorage.service.values import time_of
from moorage.store.access.audit import AuditRow


class Outlook(msgspec.Struct, frozen=True):
    """What an action does. `lines` are for people, `effect` has the leases and tickets."""

    lines: tuple[str, ...]
    effect: Effect
    digest: str
    """Of what the operator is shown: another one is another promise."""
    generation: int | None = None
    """Of the pool afterwards; None: no pool changes."""
    audit: tuple[str, ...] = ()
    """Ids of the audit rows; empty: nothing was saved, or the owner of a lease has acted."""
    done: bool = False
    """Whether it has changed anything."""
    before: Pool | Lease | Agent | None = None
    """What changes, as it was, for an action that takes this one back."""
    after: Lease | None = None
    """The lease or ticket that changes, as it is then."""


class Line(NamedTuple):
    """A sentence for people, and what of it is promised to them: nothing else is in the digest.

    How many wait on or are free is no promise: in a busy pool it is another number every second.
    An instant is promised in service time, because a clock can be set.
    """

    text: str
    promise: str


@dataclass(slots=True)
class Acting(UseCase[Outlook]):
    """Try a case, or carry it out if it does what its operator has seen.

    Args:
        case: of any room; its answer is not used.
        what: the action with its object and all that is asked of it, for the digest.
        digest: of the trial that the operator has seen; None: this is a trial, nothing is saved.
    """

    case: UseCase[Any]
    what: Any
    digest: str | None = None
    pool: str | None = None
    """The pool that changes."""
    lease: LeaseId | None = None
    """The lease or ticket that changes."""
    agent: AgentId | None = None
    """The agent that changes."""
    lasts: int | None = None
    """How long a pause, or a kept lease, shall last (microseconds): its end moves on until it is
    carried out."""
    outlook: Outlook = field(init=False, repr=False)
    rows: list[AuditRow] = field(default_factory=list, init=False)
    _before: Pool | Lease | Agent | None = field(default=None, init=False)
    _changed: bool = field(default=False, init=False)
    _closed: dict[str, int] = field(default_factory=dict, init=False)
    _opened: dict[str, int] = field(default_factory=dict, init=False)

    alone: ClassVar[bool] = True
    is_followed: ClassVar[bool] = True

    def keys(self) -> Keys:
        """Return the keys of the case."""
        return self.case.keys()

    def decide(self, world: World, when: When) -> Changes:
        """Decide the case, and keep what it changes as it was."""
        facts = world.admission
        if self.pool is not None:
            self._before = facts.pools.get(self.pool)
        elif self.lease is not None:
            self._before = facts.leases.get(self.lease)
        elif self.agent is not None:
            self._before = world.fleet.agents.get(self.agent)
        made = self.case.decide(world, when)
        self._changed = bool(made.admission)
        ledger = LedgerChanges() if made.ledger is None else made.ledger
        self._closed, self._opened = _shut(world, ledger)
        return made

    def review(self, made: Changes, world: World, when: When) -> bool:
        """Save nothing of a trial, nor of what is not as it was shown. Raises EFFECT_CHANGED."""
        effect = Effect() if made.admission is None else effect_of(made.admission, when.moment)
        said = [*self._lines(world, when, effect)]
        lines = tuple(line.text for line in said)
        promises = [line.promise for line in said if line.promise]
        digest = sha256(
            msgspec.json.encode([self.what, promises, effect.leases_end, effect.tickets_end])
        ).hexdigest()
        pool = None if self.pool is None else world.admission.pools.get(self.pool)
        generation = None if pool is None else pool.generation
        after = None if self.lease is None else world.admission.leases.get(self.lease)
        self.outlook = Outlook(lines, effect, digest, generation, before=self._before, after=after)
        if self.digest is None:
            return False
        if self.digest != digest:
            raise Error(
                Code.EFFECT_CHANGED,
                "Nothing was done: by now it would do something else than was shown. Look again.",
            )
        return True

    def audit(self, now: Instant) -> list[AuditRow]:
        """Return the rows of the case, with ids."""
        self.rows = [
            row if row.id else row._replace(id=audit_id_new()) for row in self.case.audit(now)
        ]
        return self.rows

    def conclude(self, world: World, when: When) -> Outlook:
        """Return what it does, or has done."""
        rows = tuple(row.id for row in self.rows)
        done = self.digest is not None and (bool(rows) or self._changed)
        return msgspec.structs.replace(self.outlook, audit=rows, done=done)

    def _lines(self, world: World, when: When, effect: Effect) -> Iterator[Line]:
        facts, before = world.admission, self._before
        if isinstance(before, Pool):
            yield from _pool_lines(world, when, before, facts.pools[before.name], self.lasts)
        elif isinstance(before, Lease):
            after = facts.leases[before.id]
            yield from _lease_lines(world, when, before, after, self.lasts)
            yield from _awaited(world, before, after)
        if self.pool is not None or self.lease is not None:
            yield from map(_promised, effect.lines())
        if self._closed:
            yield _promised(f"No longer offered, although it is free: {_amounts(self._closed)}.")
            yield _promised("What is placed there stays.")
        if self._opened:
            yield _promised(f"Offered again: {_amounts(self._opened)}.")


def _promised(text: str) -> Line:
    return Line(text, text)


def _amounts(amounts: dict[str, int]) -> str:
    return ", ".join(f"{amount:,} {name}" for name, amount in sorted(amounts.items()))


def _shut(world: World, made: LedgerChanges) -> tuple[dict[str, int], dict[str, int]]:
    """Return the free amounts of each class that are not offered any more, and that are again."""
    closed: dict[str, int] = {}
    opened: dict[str, int] = {}
    for (uuid, name), after in made.inventories.items():
        before = world.ledger.inventories_of(uuid).get(name)
        was = 0 if before is None else max(0, int(capacity_of(before)) - before.used)
        left = 0 if after is None else max(0, int(capacity_of(after)) - after.used)
        if left < was:
            closed[name] = closed.get(name, 0) + was - left
        elif left > was:
            opened[name] = opened.get(name, 0) + left - was
    return closed, opened


def _pool_lines(
    world: World, when: When, before: Pool, after: Pool, lasts: int | None
) -> Iterator[Line]:
    facts, name, at = world.admission, before.name, when.moment.at
    yield from _changed("limit", _limit_text(before), _limit_text(after))
    yield from _changed("pacing", _pacing_text(before), _pacing_text(after))
    if after.paused:
        text = f"{name} grants nothing {_pause_text(when, after, lasts)}."
        yield Line(text, f"{name} grants nothing.")
        if after.waiting:
            text = f"{counted(after.waiting, 'ticket')} {are(after.waiting)} waiting, and wait on."
            yield Line(text, "")
        yield _promised(
            "Jobs with --best-effort start without a lease when their wait is over, unless they"
            " have --unless-paused."
        )
        return
    if before.paused:
        yield _promised(f"{name} grants again.")
    over = after.occupied - limit_of(facts, after)
    if over > 0:
        what = "no lease is revoked, and nothing is granted until enough units are released."
        text = f"{name} is over its limit by {counted(over, 'unit')}: {what}"
        yield Line(text, f"{name} is over its limit: {what}")
    left = sum(max(0, units) for units in free_units(facts, after, at).values())
    if left and after.waiting and after.spec.pacing is not None:
        text = (
            f"{counted(after.waiting, 'ticket')} and {counted(left, 'free unit')} are left: pacing"
            f" permits a grant every {age_text(after.spec.pacing.interval / SECOND)}."
        )
        yield Line(text, "")


def _pause_text(when: When, pool: Pool, lasts: int | None) -> str:
    """Return for how long a pool is paused, in the words in which it was asked."""
    if lasts is not None:
        return f"for {age_text(lasts / SECOND)}"
    until = pool.paused_until
    return f"until {'somebody resumes it' if until is None else _clock(when, until)}"


def _changed(what: str, before: str, after: str) -> Iterable[Line]:
    if before == after:
        return []
    return [_promised(f"The {what} changes from {before} to {after}.")]


def _limit_text(pool: Pool) -> str:
    return "none" if pool.spec.limit is None else str(pool.spec.limit)


def _pacing_text(pool: Pool) -> str:
    pacing = pool.spec.pacing
    if pacing is None:
        return "none"
    jitter = f" and up to {pacing.jitter / SECOND:g} s more" if pacing.jitter else ""
    return f"{pacing.burst} at once, then one every {pacing.interval / SECOND:g} s{jitter}"


def _awaited(world: World, before: Lease, after: Lease) -> Iterator[Line]:
    """Yield how many tickets wait for what is kept."""
    if after.kept is None or after.kept == before.kept:
        return
    waiting = sum(world.admission.pools[name].waiting for name in units_by_pool(after.needs))
    if waiting:
        tickets = f"{counted(waiting, 'ticket')} {are(waiting)}"
        yield Line(f"{tickets} waiting in the line of its pools.", "")


def _lease_lines(
    world: World, when: When, before: Lease, after: Lease, lasts: int | None
) -> Iterator[Line]:
    if before.priority != after.priority:
        yield _promised(f"The priority changes from {before.priority} to {after.priority}.")
    if after.kept is not None and after.kept != before.kept:
        yield _kept_line(when, after, lasts)
        if before.hold_until is not None:
            yield _present_end(when, before.hold_until)
    elif (before.hold, before.hold_until) != (after.hold, after.hold_until):
        yield _promised(f"It may last {_lasting(after.hold)} from now on.")
        pools = [world.admission.pools[need.pool] for need in after.needs]
        for pool in pools:
            most = pool.spec.hold_max
            since = units_held_since(after)
            held = 0 if since is None else when.moment.at - since
            if most is not None and (after.hold is None or held + after.hold > most):
                yield _promised(
                    f"{pool.name} permits its users at most {_lasting(most)} (hold_max); operators"
                    " may give more."
                )
        if before.hold_until is not None:
            yield _present_end(when, before.hold_until)
        if after.stop_until is not None:
            at = _clock(when, after.stop_until)
            text = "Its holder is asked to stop for another request: in any case it ends at"
            yield Line(f"{text} {at}.", f"{text} {after.stop_until}.")
    if before.state == "granted" and after.state == "ended":
        yield _promised("Its units become free although its job may still run.")
    if before.state == "ended":
        yield _promised("It has ended before.")


def _kept_line(when: When, lease: Lease, lasts: int | None) -> Line:
    assert lease.hold_until is not None
    end = _clock(when, lease.hold_until)
    until = f"until {end}" if lasts is None else f"for {age_text(lasts / SECOND)}"
    text = f"It is kept for inspection {until}: it needs no renewals, and ends by itself."
    return Line(text, "It is kept for inspection.")


def _present_end(when: When, at: Instant) -> Line:
    return Line(f"At present it ends at {_clock(when, at)}.", f"It ends at {at}.")


def _lasting(hold: int | None) -> str:
    return "without an end" if hold is None else age_text(hold / SECOND)


def _clock(when: When, at: Instant) -> str:
    """Return a service time by the wall clock, to the second."""
    wall: datetime = time_of(Instant(at - when.moment.at + when.wall))
    return f"{wall:%Y-%m-%d %H:%M:%S} UTC"
