"""Use cases of reports with a plan: both count, or neither.

A plan that has been settled is answered in a common batch: thousands of machines send theirs again
when they boot. Otherwise the report is alone in its batch, as every reshape.
"""

from dataclasses import dataclass
from typing import ClassVar

from moorage.core.fleet import plans
from moorage.core.fleet.facts import Changes as FleetChanges
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.fleet.model import Agent, AgentPlan, PlanOutcome
from moorage.core.ledger.bulk import Trial
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.reshape_records import ReshapeMade, is_repeated
from moorage.core.ledger.reshaping.own_tree import Machine
from moorage.core.ledger.reshaping.plan import ReshapePlan
from moorage.core.ledger.reshaping.plan import keys_for as plan_keys
from moorage.core.ledger.reshaping.planning import plan_reshape
from moorage.core.ledger.reshaping.satisfied import is_satisfied
from moorage.core.restart import Restart
from moorage.core.service_time import When
from moorage.service.batch.extra_loads import TreesNeeded
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.fleet.agent_cases import AgentReport
from moorage.service.ledger.reshapes import Wish, audited, check, check_all_loaded, kept


@dataclass(slots=True)
class AgentSettled(AgentReport):
    """Record a report whose plan is settled already. Answer: the agent.

    Otherwise it changes nothing, and `Agent.plan` of the answer is another one.
    """

    plan: ReshapePlan
    digest: str
    """Identifies the content of the plan."""

    def keys(self) -> Keys:
        """Name the agent, its tree, and the reshapes that may have carried out the plan."""
        keys = AgentReport.keys(self)
        boot = self.report.boot_id
        keys.reshapes |= plans.reshapes_of(self.known, self.agent, boot, self.digest)
        return keys

    def decide(self, world: World, when: When) -> Changes:
        """Record the report, and what is known of the plan."""
        made = AgentReport.decide(self, world, when)
        after = self._after(world, made)
        known = self._known(world, after, when)
        return Changes() if known is None else self._with_plan(made, after, known, when)

    def _after(self, world: World, made: Changes) -> Agent:
        """Return the agent as the report makes it."""
        changed = None if made.fleet is None else made.fleet.agents.get(self.agent)
        return world.fleet.agents[self.agent] if changed is None else changed

    def _known(self, world: World, after: Agent, when: When) -> AgentPlan | None:
        """Return what is known of the plan. Raises KEY_REUSED: its id is that of another one."""
        own = plans.reshape_id_for(after.uuid, self.report.boot_id, self.digest)
        is_repeated(world.reshapes.get(own), self.digest, None)
        undone = {one.id: one.undone_by is not None for one in world.reshapes.values()}
        return plans.settled(after, self.digest, undone, when.stamp)

    def _with_plan(self, made: Changes, after: Agent, plan: AgentPlan, when: When) -> Changes:
        """Return the changes with what became of the plan."""
        fleet = FleetChanges()
        if made.fleet is not None:
            fleet.update(made.fleet)
        fleet.update(plans.noted(after, plan, when.stamp))
        return Changes(ledger=made.ledger, fleet=fleet, reshape=made.reshape)


@dataclass(slots=True)
class AgentPlanned(AgentSettled):
    """Record a report, and carry out its plan in the same batch. Answer: the agent.

    Raises what `AgentReport` raises; ReshapeRefusal: RESHAPE_REFUSED; `Error`: NOT_ACCEPTED,
    KEY_REUSED, LIMIT_EXCEEDED. Then neither the report nor the plan counts.
    """

    alone: ClassVar[bool] = True
    patient: ClassVar[bool] = False
    """A request that must be alone would wait for ever behind requests that need not."""

    @property
    def large(self) -> bool:
        """Whether its keys are made in a thread: always."""
        return True

    def keys(self) -> Keys:
        """Also name what the plan needs, and the agents of what it creates."""
        keys = AgentSettled.keys(self)
        keys.ledger.update(plan_keys(self.plan))
        created = {new.uuid for new in self.plan.create}
        keys.update(Keys(fleet=FleetKeys(roots=created)))
        return keys

    def decide(self, world: World, when: When) -> Changes:
        """Plan on what the report leads to; keep both, or raise. Raises Restart."""
        made = AgentReport.decide(self, world, when)
        after = self._after(world, made)
        known = self._known(world, after, when)
        if known is not None:
            return self._with_plan(made, after, known, when)
        root = plans.check_may_plan(after)
        tree = LedgerKeys(trees={root})
        if not world.ledger.loaded.includes(tree):
            raise Restart(TreesNeeded(tree))
        trial = Trial(world.ledger, when.stamp)
        try:
            if made.ledger is not None:
                trial.step(made.ledger)
            reshape = self._carried_out(trial, Machine(after.uuid, root), after, when)
            ledger = trial.changes
        finally:
            trial.take_back()
        outcome = PlanOutcome.SATISFIED if reshape is None else PlanOutcome.DONE
        done = None if reshape is None else reshape.record.id
        plan = AgentPlan(self.digest, self.report.boot_id, outcome, when.stamp, done)
        both = Changes(ledger=ledger or None, fleet=made.fleet, reshape=reshape)
        return self._with_plan(both, after, plan, when)

    def _carried_out(
        self, trial: Trial, machine: Machine, agent: Agent, when: When
    ) -> ReshapeMade | None:
        """Carry out the plan; None: its shape is there. Raises what `decide` raises."""
        facts = trial.facts
        check_all_loaded(facts)
        planned = plan_reshape(facts, trial.now, self.plan, author=machine)
        if not planned.violations and not planned.effects:
            return None
        if planned.violations and is_satisfied(facts, trial.now, self.plan, machine):
            return None
        check(planned, None)
        boot = self.report.boot_id
        wish = Wish(
            plans.reshape_id_for(agent.uuid, boot, self.digest),
            self.digest,
            None,
            f"the plan of agent {agent.uuid} in boot {boot}",
        )
        reshape, _ = kept(planned, wish, self.by, when)
        trial.step(planned.changes)
        self.rows.append(audited(reshape.record, self.by, when))
        return reshape
