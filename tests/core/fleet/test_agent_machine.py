"""Random messages of machines and operators: the rules agree with a naive model.

Reports are lost, repeated and reordered, and two machines may use one agent's UUID. A ledger
follows the agent, and consumers claim its classes. The numbers in the checks are those of the
invariants: I1 only what is there is offered, I2 a boot empties volatile classes, I3 only the
current boot reports, I4 reports count once and in order, I5 amounts rise only by reports, I6
decommissioned agents are refused, I7 expunged machines are recorded but not offered, I8 less than
is used may be there, without evictions or new claims, I11 repeats change nothing, I14 old places
are unconfirmed until they are reported, I18 actions follow their table and can be repeated, I21
silence closes the whole tree if the group says so, and nothing stays closed afterwards.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Error
from moorage.core.fleet import desired, groups, policy, registering, reports
from moorage.core.fleet.facts import Changes
from moorage.core.fleet.model import Liveness, Silence
from moorage.core.fleet.offers import offered
from moorage.core.fleet.policy import Action
from moorage.core.fleet.starts import unconfirmed
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger import capacity
from tests.core.fleet import model as naive
from tests.core.fleet.build import A1, BIG, C1, C2, C3, ROOT, SMALL, World, spec
from tests.core.fleet.machine_ledger import OTHERS, OTHERS_TOTAL, Ledger
from tests.core.fleet.machine_values import goal_of, provider, report_of, specs
from tests.core.fleet.model import Held, Key, Model, Sent

PARTS = ("numa0", "numa1")
KEYS: list[Key] = [(part, name) for part in PARTS for name in (SMALL, BIG)]
CONSUMERS = (C1, C2, C3, ConsumerId("00000004-cccc-4ccc-8ccc-cccccccccccc"))

classes = st.builds(
    Held,
    eligible=st.sampled_from([10, 20, 7]),
    volatile=st.booleans(),
    step=st.sampled_from([1, 1, 4]),
)
listings = st.dictionaries(st.sampled_from(KEYS), classes, min_size=1, max_size=4)
goals: st.SearchStrategy[naive.Goal] = st.sampled_from([5, 3, 0, 7, "30", "100"])
amounts = st.sampled_from([0, 3, 5, 7, 10, 25])


class Machine(RuleBasedStateMachine):
    """Sends each message to the rules and to the model."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.world.create()
        self.model = Model()
        self.ledger = Ledger()
        self.boots = 0
        self.network: list[Sent] = []
        self.listed: dict[Key, Held] = {}
        self.born: dict[ProviderId, int] = {}

    def expect(self, expected: str, decide: Any, *words: Any, **more: Any) -> bool:
        """Assert that the rules decide as the model; return whether something changed."""
        before, seen = self.world.agent(), self.figures()
        try:
            changes = decide(*words, **more)
        except Error as refusal:
            assert str(refusal.code) == expected, refusal
            assert self.world.agent() == before
            return False
        assert expected == ("ok" if changes else "same")
        self.world.do(changes)
        self.ledger.follow(self.world.agent())
        if decide is not reports.report:  # I5
            assert all(self.figures()[key] <= held for key, held in seen.items())
        return expected == "ok"

    def figures(self) -> dict[Key, int]:
        """Return what is there, as the rules have it."""
        agent = self.world.agent()
        return {
            (part.name, name): one.actual
            for part in agent.parts.values()
            for name, one in part.classes.items()
        }

    def register(self, boot: str, listed: dict[Key, Held]) -> None:
        """Register a boot with these classes."""
        generations = self.ledger.generations()
        sent = spec(boot, specs(listed), root=ROOT if self.model.given else None)
        known = self.world.agent().boot_id
        answer = self.model.register(boot, listed)
        words = (self.world.facts, self.world.now, A1, sent, generations)
        self.expect(answer, registering.register, *words)
        if answer in ("ok", "same"):
            self.listed = listed
            if boot != known:
                self.check_boot(generations)
            for uuid in {provider(key) for key in listed}:
                self.born.setdefault(uuid, generations.get(uuid, 0))

    def check_boot(self, generations: dict[ProviderId, int]) -> None:
        """I2: whatever is volatile is empty at once."""
        for part in self.world.agent().parts.values():
            for one in part.classes.values():
                assert not (one.volatile and one.actual)
        self.born = {uuid: generations.get(uuid, 0) for uuid in self.world.agent().parts}

    @initialize(listed=listings, goal=goals, given=st.booleans())
    def begin(self, listed: dict[Key, Held], goal: naive.Goal, given: bool) -> None:
        """Most machines are ready before anything else happens; others created some roots."""
        if given:
            self.model.given = True
            self.world.create(root=ROOT)
            self.ledger.give(ROOT)
        for name in (SMALL, BIG):
            self.group(name, goal)
        self.boot(listed)
        self.prepare(frozenset())

    @precondition(lambda self: self.boots)
    @rule(consumers=st.none() | st.frozensets(st.sampled_from(CONSUMERS)))
    def prepare(self, consumers: frozenset[str] | None) -> None:
        """The machine reports that all is there; if it may, it is in use again."""
        if self.model.policy == "no_provision":
            self.operate(Action.RESUME, None)
        self.fall_silent(Liveness.FRESH)
        held = self.model.held.items()
        actual = {key: self.model.desired(key) for key, one in held if one.listed}
        self.progress(True, actual, consumers)

    def progress(
        self, done: bool, actual: dict[Key, int], consumers: frozenset[str] | None = None
    ) -> None:
        """The current boot reports."""
        boot, generation = self.model.boots[-1], self.model.generation + 1
        self.network.append(Sent(boot, generation, done, False, actual, consumers))
        self.deliver_one(self.network[-1])

    @rule(percent=st.sampled_from([0, 50, 100]))
    def boot_slowly(self, percent: int) -> None:
        """The machine boots, and reports twice while it prepares."""
        self.boot(self.listed)
        listed = [key for key, one in self.model.held.items() if one.listed]
        for share in (0, percent):
            self.progress(False, {key: self.model.desired(key) * share // 100 for key in listed})

    @rule(sure=st.integers(0, 7))
    def retire(self, sure: int) -> None:
        """Rarely, a machine is emptied and taken out of service for ever."""
        if not sure:
            for consumer in CONSUMERS:
                assert self.ledger.claim(consumer, {})
            self.operate(Action.EXPUNGE, None)
            self.operate(Action.DECOMMISSION, None)

    @rule(listed=listings)
    def boot(self, listed: dict[Key, Held]) -> None:
        """The machine boots, or a clone of it does."""
        self.boots += 1
        self.register(f"boot-{self.boots}", listed)

    @rule(often=st.integers(0, 4))
    def boot_as_before(self, often: int) -> None:
        """The machine boots, and has the same parts as before; mostly only its agent restarts."""
        if not often:
            self.boot(self.listed)
        elif self.boots:
            self.register(f"boot-{self.boots}", self.listed)

    @precondition(lambda self: self.boots)
    @rule(data=st.data(), again=st.booleans(), listed=listings)
    def register_again(self, data: st.DataObject, again: bool, listed: dict[Key, Held]) -> None:
        """A boot registers again, with the same or other classes; it may be a superseded one."""
        boot = data.draw(st.integers(1, self.boots) | st.just(self.boots))
        self.register(f"boot-{boot}", self.listed if again else listed)

    @precondition(lambda self: self.boots)
    @rule(
        data=st.data(),
        ahead=st.sampled_from([1, 1, 1, 1, 2, 0, -1]),
        done=st.sampled_from([True, True, False]),
        failed=st.sampled_from([False, False, True]),
        consumers=st.none() | st.frozensets(st.sampled_from(CONSUMERS)),
        lost=st.sampled_from([False, False, False, True]),
    )
    def send(
        self,
        data: st.DataObject,
        ahead: int,
        done: bool,
        failed: bool,
        consumers: frozenset[str] | None,
        lost: bool,
    ) -> None:
        """A boot reports; the report may be delayed."""
        boot = data.draw(st.integers(1, self.boots + 1) | st.just(self.boots) | st.just(self.boots))
        keys = [key for key, held in self.model.held.items() if held.listed]
        if data.draw(st.sampled_from([False] * 9 + [True])):
            keys = keys[1:]
        actual = {key: data.draw(amounts) for key in keys}
        generation = self.model.generation + ahead
        self.network.append(Sent(f"boot-{boot}", generation, done, failed, actual, consumers))
        if not lost:
            self.deliver_one(self.network[-1])

    @precondition(lambda self: self.network)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        """An old report arrives, perhaps again."""
        self.deliver_one(data.draw(st.sampled_from(self.network[-6:])))

    def deliver_one(self, sent: Sent) -> None:
        words = (self.world.facts, self.world.now, A1, report_of(sent))
        if self.expect(self.model.report(sent), reports.report, *words):
            assert self.model.report(sent) == "same"  # I11
            assert not reports.report(self.world.facts, self.world.now, A1, report_of(sent))

    @precondition(lambda self: self.boots)
    @rule(data=st.data(), ahead=st.sampled_from([0, 0, 1, -1]))
    def beat(self, data: st.DataObject, ahead: int) -> None:
        """A boot sends a sign of life."""
        boot = f"boot-{data.draw(st.integers(1, self.boots + 1) | st.just(self.boots))}"
        generation = self.model.generation + ahead

        def alive() -> Changes:
            reports.check_alive(self.world.agent(), boot, generation)
            return Changes()

        self.expect(self.model.alive(boot, generation), alive)

    @rule(liveness=st.sampled_from([*[Liveness.FRESH] * 3, *Liveness]))
    def fall_silent(self, liveness: Liveness) -> None:
        """The sweep notices silence, or that it is over."""
        agent = replace(self.world.agent(), liveness=liveness)
        self.world.do(Changes(agents={A1: agent}))
        self.model.liveness = liveness
        self.ledger.follow(agent)

    @rule(data=st.data(), goal=st.none() | goals)
    def wish(self, data: st.DataObject, goal: naive.Goal | None) -> None:
        """An operator sets a goal."""
        keys = [key for key, held in self.model.held.items() if held.listed]
        if not keys:
            return
        key = data.draw(st.sampled_from(sorted(keys)))
        everywhere = data.draw(st.booleans())
        meant = [one for one in keys if one[1] == key[1]] if everywhere else [key]
        wanted = desired.DesiredSpec(key[1], None if everywhere else provider(key), goal_of(goal))
        answer = "decommissioned"
        if self.model.state == "active":
            held = [self.world.agent().parts[provider(one)].classes[one[1]] for one in meant]
            answer = self.model.set(meant, goal)
            if goal is not None and any(one.source == "placement" for one in held):
                answer = "ok"
        self.expect(answer, desired.set_goal, self.world.facts, self.world.now, A1, wanted)

    @rule(data=st.data(), total=st.sampled_from([0, 1, 4, 50]))
    def overwrite(self, data: st.DataObject, total: int) -> None:
        """A client of the Placement API writes a total."""
        if not self.model.held:
            return
        key = data.draw(st.sampled_from(sorted(self.model.held)))
        before = self.world.agent().parts[provider(key)].classes[key[1]]
        answer = "same"
        if self.model.state == "active":
            answer = self.model.set([key], total)
            if before.source != "placement":
                answer = "ok"
        words = (self.world.facts, self.world.now, A1, {(provider(key), key[1]): total})
        self.expect(answer, desired.overwritten, *words)

    @rule(name=st.sampled_from([SMALL, BIG]), goal=goals)
    def group(self, name: str, goal: naive.Goal) -> None:
        """An operator sets the default of the group."""
        self.model.default(name, goal)
        wanted = goal_of(goal)
        assert wanted is not None
        defaults = {**self.world.facts.groups["default"].desired, name: wanted}
        self.world.group("default", [A1], **defaults)
        self.ledger.follow(self.world.agent())

    @rule(silence=st.sampled_from(Silence))
    def settle(self, silence: Silence) -> None:
        """An operator sets what the silence of the group's agents closes."""
        if self.model.state == "active":
            self.model.silence = silence.value
        facts, now = self.world.facts, self.world.now
        self.world.do(
            groups.put(facts, now, "default", facts.groups["default"].desired, [A1], silence)
        )
        self.ledger.follow(self.world.agent())

    @rule(
        action=st.sampled_from([*[Action.RESUME] * 12, *[Action.DRAIN] * 4, *Action]),
        seconds=st.sampled_from([None, None, 30]),
    )
    def operate(self, action: Action, seconds: int | None) -> None:
        """An operator acts, and repeats it, because the answer was lost."""
        facts, until, used = self.world.facts, None, bool(self.ledger.facts.consumers)
        if action is Action.DRAIN and seconds is not None:
            until = Instant(self.world.now + seconds * SECOND)
        decide = getattr(policy, action.value)
        more: dict[str, Any] = {"until": until} if action is Action.DRAIN else {}
        if action is Action.DECOMMISSION:
            more = {"used": used}
        words = (A1, "work", "ann")
        answer = self.model.operate(action, until, used)
        if self.expect(answer, decide, facts, self.world.now, *words, **more):
            assert not decide(facts, self.world.now, *words, **more)  # I18

    @rule()
    def time_passes(self) -> None:
        """Drains that are over end."""
        self.world.now = Instant(self.world.now + 20 * SECOND)
        over = self.model.until is not None and self.model.until <= self.world.now
        answer = self.model.operate("resume") if over else "same"
        self.expect(answer, policy.drain_over, self.world.agent(), self.world.now)

    @precondition(lambda self: self.offered_keys())
    @rule(data=st.data(), consumer=st.sampled_from(CONSUMERS))
    def claim_what_is_offered(self, data: st.DataObject, consumer: ConsumerId) -> None:
        """A consumer claims a class of which something is offered."""
        key = data.draw(st.sampled_from(self.offered_keys()))
        step = self.model.held[key].step
        self.claim_some(key, consumer, data.draw(st.sampled_from([step, 2 * step])))

    def offered_keys(self) -> list[Key]:
        """Return the classes of which something is offered."""
        return sorted(key for key in self.model.held if self.model.offer(key))

    @precondition(lambda self: self.model.held)
    @rule(data=st.data(), consumer=st.sampled_from(CONSUMERS), amount=st.sampled_from([1, 2, 4, 0]))
    def claim(self, data: st.DataObject, consumer: ConsumerId, amount: int) -> None:
        """A consumer claims a class, or gives back everything."""
        self.claim_some(data.draw(st.sampled_from(sorted(self.model.held))), consumer, amount)

    def claim_some(self, key: Key, consumer: ConsumerId, amount: int) -> None:
        own = self.ledger.facts.consumers.get(consumer)
        before = {} if own is None else own.allocations.get(provider(key), {})
        used = self.ledger.used(provider(key), key[1]) - before.get(key[1], 0)
        fits = self.ledger.claim(consumer, {provider(key): {key[1]: amount}} if amount else {})
        if not amount or amount % self.model.held[key].step:
            return
        raised = amount > before.get(key[1], 0)
        assert fits == (not raised or used + amount <= self.model.offer(key))  # I13

    @invariant()
    def agrees(self) -> None:
        """All axes, generations and amounts are those of the model."""
        agent, model = self.world.agent(), self.model
        assert (agent.state, agent.policy) == (model.state, model.policy)
        assert (agent.readiness, agent.liveness) == (model.readiness, model.liveness)
        assert agent.report_generation == model.generation
        assert agent.desired_generation == model.rises
        assert agent.policy_until == model.until
        assert agent.confirmed == model.confirmed
        assert agent.boot_id == (model.boots[-1] if model.boots else None)
        assert self.figures() == {key: held.actual for key, held in model.held.items()}

    @invariant()
    def offers_what_is_there(self) -> None:
        """I1, I6, I7, I8: offers and the ledger's capacity, with all claims as they were."""
        agent = self.world.agent()
        for key in self.model.held:
            part = agent.parts[provider(key)]
            one = part.classes[key[1]]
            assert one.desired == self.model.desired(key)
            offer = offered(agent, part, one)
            assert offer == self.model.offer(key)
            assert offer <= min(one.actual, one.desired)
            stored = self.ledger.facts.inventories_of(provider(key)).get(key[1])
            used = self.ledger.used(provider(key), key[1])
            # What was used, but is not desired, stays in the ledger until it follows again.
            assert stored is not None or not (one.desired or used)
            if stored is not None:
                assert (stored.used, capacity.capacity_of(stored)) == (used, offer)
                assert capacity.has_room(stored, 1) == (used + 1 <= offer)

    @invariant()
    def closes_the_tree(self) -> None:
        """I21: a silent machine offers nothing at all where its group says so; else as before."""
        root = self.world.agent().root
        if root is None:
            return
        found = self.ledger.facts
        assert (found.providers[root].withheld is None) == self.model.is_open()
        if self.model.liveness != "fresh" and self.model.silence == "all":
            tree = [one for held in found.inventories.values() for one in held.values()]
            assert not any(map(capacity.capacity_of, tree))
        if self.model.given:
            others = found.inventories_of(root)[OTHERS]
            total = OTHERS_TOTAL if self.model.is_open() else 0
            assert (others.total, capacity.capacity_of(others)) == (OTHERS_TOTAL, total)

    @invariant()
    def knows_who_is_unconfirmed(self) -> None:
        """I14: places from before the boot, of consumers that no report of it has listed."""
        expected = {
            consumer
            for (uuid, consumer), since in self.ledger.places.items()
            if since <= self.born.get(uuid, 0) and consumer not in self.model.confirmed
        }
        assert unconfirmed(self.world.agent(), self.ledger.listed_places()) == sorted(expected)


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
