"""The cases of pools: each writes an audit row, in the transaction of its change."""

from dataclasses import dataclass
from typing import Any

from msgspec import structs

from moorage.core.admission import pools
from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.admission.facts import Facts
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.model import Pacing, Pool, PoolSpec
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.service_time import When
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.use_case import A, AuditedUseCase, UseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.values import time_of
from moorage.store.access.audit import AuditRow


@dataclass(slots=True)
class NamedCase(AuditedUseCase[A]):
    """A change by an operator of what has a name; `A` is the type of its answer."""

    name: str
    by: Actor

    def leave(self, action: str, before: Any, after: Any, when: When) -> None:
        """Set the audit row of a decision, unless it changes nothing."""
        row = audit_entry(when.wall, self.by, action, self.name, before, after)
        self.rows = [row] if before != after else []


@dataclass(slots=True)
class PoolCase(NamedCase[None]):
    """A change of one pool by an operator."""

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(pools={self.name}))

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class PoolPut(PoolCase):
    """Create or update a pool. `generation` is the expected one; 0: the pool must not exist.

    `paced`: its pacing is derived from its hold and its units, regardless of `spec`.
    """

    spec: PoolSpec
    generation: int | None
    paced: bool = False

    def keys(self) -> Keys:
        return Keys(
            admission=AdmissionKeys(
                pools={self.name},
                quotas=set() if self.spec.quota is None else {self.name},
                member_groups=set() if self.spec.member_group is None else {self.spec.member_group},
                cohorts=set() if self.spec.cohort is None else {self.spec.cohort},
            )
        )

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        before = facts.pools.get(self.name)
        spec = pools.paced(before, facts, self.spec, when.moment.at) if self.paced else self.spec
        changes, _ = pools.put(facts, when.moment, when.wall, self.name, spec, self.generation)
        self.leave("pool.put", _shown(before), structs.asdict(spec), when)
        return Changes(admission=changes)


@dataclass(slots=True)
class PoolTune(PoolCase):
    """Change only the limit and the pacing of a pool. `limit` None: it stays.

    `generation` is that of the pool as the operator knows it; None: any.
    """

    limit: int | None
    pacing: Pacing | None
    generation: int | None = None

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        before = facts.pools.get(self.name)
        if before is None:
            raise pools.not_found(self.name)
        spec = structs.replace(before.spec, pacing=self.pacing)
        if self.limit is not None:
            if spec.per_member is not None:
                raise Error(
                    Code.INVALID,
                    f"The limit of pool '{self.name}' follows the members of"
                    f" {spec.member_group}: change per_member instead.",
                )
            spec = structs.replace(spec, limit=self.limit)
        changes, _ = pools.put(facts, when.moment, when.wall, self.name, spec, self.generation)
        self.leave("pool.put", _shown(before), structs.asdict(spec), when)
        return Changes(admission=changes)


@dataclass(slots=True)
class PoolPause(PoolCase):
    """Stop granting (`paused`) or resume it; everything else continues."""

    paused: bool
    reason: str = ""
    until: Instant | None = None
    """By the wall clock: when the pause ends by itself."""
    lasts: int | None = None
    """The same in microseconds from now."""

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        before = facts.pools.get(self.name)
        changes, pool = pools.pause(
            facts,
            when.moment,
            when.wall,
            self.name,
            self.paused,
            self.reason,
            self._end(when),
            self.by.who,
        )
        action = "pool.pause" if self.paused else "pool.resume"
        self.leave(action, before and pause_shown(before, when), pause_shown(pool, when), when)
        return Changes(admission=changes)

    def _end(self, when: When) -> Instant | None:
        """Return the end in service time; None: somebody must resume it."""
        if self.lasts is not None:
            return Instant(when.moment.at + self.lasts)
        return None if self.until is None else Instant(self.until - when.wall + when.moment.at)


@dataclass(slots=True)
class PoolDelete(PoolCase):
    """Delete a pool without leases and tickets."""

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        before = _shown(facts.pools.get(self.name))
        changes, _ = pools.delete(facts, when.moment, self.name)
        self.leave("pool.delete", before, None, when)
        return Changes(admission=changes)


@dataclass(slots=True)
class MembersCounted(UseCase[None]):
    """Let limits follow the members of a group of reporters: any batch that loads pools does."""

    group: str

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(member_groups={self.group}))

    def decide(self, world: World, when: When) -> Changes:
        return Changes()

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


def pause_shown(pool: Pool, when: When) -> Any:
    """Return whether a pool is paused, with the reason and the end if there are any."""
    shown: dict[str, Any] = {"paused": pool.paused}
    if pool.pause_reason:
        shown["reason"] = pool.pause_reason
    if pool.paused_until is not None:
        shown["until"] = time_of(Instant(pool.paused_until - when.moment.at + when.wall))
    return shown if len(shown) > 1 else pool.paused


ADAPTIVE_LIMIT = Actor("adaptive-limit", None, "")
"""The author of the steps of adaptive limits."""


def adapted_rows(facts: Facts, changes: AdmissionChanges, when: When) -> list[AuditRow]:
    """Return the audit rows of the limits that outcomes have changed, with their evidence.

    `facts` are as before the changes.
    """
    rows = []
    for name, pool in sorted(changes.pools.items()):
        state = None if pool is None else pool.adaptation
        step = None if state is None else state.last
        if pool is None or step is None or pool.spec.limit == facts.pools[name].spec.limit:
            continue
        before = {"limit": step.before}
        after = {"limit": step.after, "verdict": step.verdict, **structs.asdict(step.counts)}
        rows.append(audit_entry(when.wall, ADAPTIVE_LIMIT, "pool.adapt", name, before, after))
    return rows


def _shown(pool: Pool | None) -> Any:
    return None if pool is None else structs.asdict(pool.spec)
