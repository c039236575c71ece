"""Reports with a plan: once for each boot and content, as a whole, and only in the own tree."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.core.errors import Code
from moorage.core.fleet import plans
from moorage.core.fleet.model import Agent, PlanOutcome
from moorage.core.fleet.policy import Action
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.reshaping.own_tree import uuid_for
from moorage.core.ledger.reshaping.plan import (
    Figures,
    Generations,
    Move,
    NewProvider,
    Place,
    ReshapePlan,
)
from moorage.core.ledger.reshaping.violations import ViolationCode
from moorage.core.limits import MACHINE_RESHAPES_MAX
from moorage.service.fleet import plan_bounds, plan_cases
from moorage.service.fleet import service as fleet_service
from moorage.service.ledger import operator_cases, provider_cases
from moorage.service.ledger.reshapes import ReshapeRefusal, Wish, request_of
from tests.service.fleet.machines import (
    BOOT,
    agent_enroll,
    agent_id,
    agent_policy,
    machine,
    part_id,
    ready,
    report,
)
from tests.service.fleet.pair import Pair, outcomes, play, refused
from tests.service.fleet.planning import GLOMMED, HALF, SPLIT, UNITS, Node, reshapes_of
from tests.service.ledger.reshapes.trees import commit
from tests.service.running import TESTER, claim, consumer_id, provider_id


def outcome(agent: Agent) -> tuple[PlanOutcome, str | None]:
    """Return what became of the plan."""
    assert agent.plan is not None
    return agent.plan.outcome, agent.plan.reshape


async def violations(node: Node, plan: ReshapePlan) -> set[ViolationCode]:
    """Return why a plan is refused; neither it nor its report has any effect."""
    before = await node.pair.agent(node.n), await node.pair.revision(), await node.totals()
    with pytest.raises(ReshapeRefusal) as caught:
        await node.send(plan, pages=7)
    assert caught.value.code is Code.RESHAPE_REFUSED
    after = await node.pair.agent(node.n), await node.pair.revision(), await node.totals()
    assert after == before
    return {one.code for one in caught.value.planned.violations}


def test_a_plan_is_carried_out_with_its_report(url: str) -> None:
    """Both are in one revision, and so is the audit row; the same report again changes nothing."""

    async def scenario(pair: Pair) -> None:
        node = await Node(pair).start()
        before = await pair.revision()
        agent = await node.send(node.plan(), pages=5)
        done, reshape = outcome(agent)
        assert (done, await pair.revision()) == (PlanOutcome.DONE, before + 1)
        assert reshape is not None
        assert await node.totals() == SPLIT
        assert agent.report_generation == 1
        assert await pair.actions(reshape) == ["reshape.commit"]
        record = (await pair.services[0].reshapes.read(reshape)).record
        assert (record.who, str(node.agent) in record.reason) == ("tester", True)
        for at in (0, 1):
            assert await node.send(node.plan(), at=at, again=True, pages=5) == agent
        assert await pair.revision() == before + 1
        assert await reshapes_of(pair.services[0]) == [reshape]

    play(url, scenario)


def test_both_processes_at_once_carry_it_out_once(url: str) -> None:
    """Two copies of one request, whose answer was lost, get the same answer."""

    async def scenario(pair: Pair) -> None:
        node = await Node(pair).start()
        for n in range(1, 9):
            boot = f"boot-{n}"
            await node.register(boot)
            sent = report(1, node.generation + 1, 0, boot)
            one, other = await asyncio.gather(
                *(f.report_with_plan(node.agent, sent, node.plan(), TESTER) for f in pair.fleets)
            )
            assert outcome(one) == outcome(other)
            assert outcome(one)[0] is PlanOutcome.DONE
            assert len(await reshapes_of(pair.services[0])) == 2 * n - 1
            await node.undo(outcome(one)[1], n)

    play(url, scenario)


def test_the_id_is_what_makes_it_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: if what is known of a plan is ignored, the second one is refused."""
    monkeypatch.setattr(plan_cases.AgentSettled, "_known", lambda *_: None)
    monkeypatch.setattr(plan_cases, "is_satisfied", lambda *_: False)
    monkeypatch.setattr(fleet_service, "_is_settled", lambda *_: False)

    async def scenario(pair: Pair) -> None:
        node = await Node(pair).start()
        await node.send(node.plan())
        with refused(Code.RESHAPE_REFUSED):
            await node.send(node.plan(), again=True)

    play(url, scenario)


def test_two_machines_at_once(url: str) -> None:
    """Each gets its own shape, beside claims, and nobody is refused."""

    async def scenario(pair: Pair) -> None:
        nodes = [await Node(pair, n).start() for n in (1, 2, 3, 4)]
        other = await pair.provider(9, VCPU=100)
        claims = [pair.submit(claim(100 + n, other, VCPU=1), at=n % 2) for n in range(20)]
        found = await outcomes(
            *(node.send(node.plan(), at=n % 2) for n, node in enumerate(nodes)), *claims
        )
        assert {outcome(agent)[0] for agent in found[:4]} == {PlanOutcome.DONE}
        assert not any(isinstance(one, Code) for one in found)
        assert [await node.totals() for node in nodes] == [SPLIT] * 4

    play(url, scenario)


def test_a_new_boot_is_satisfied(url: str) -> None:
    """Guests come and go for a week; the same unit file then changes nothing, even after many boots
    and a restart of the service.
    """

    async def scenario(pair: Pair) -> None:
        node = await Node(pair).start()
        _, first = outcome(await node.send(node.plan()))
        await pair.submit(claim(12, node.right, VCPU=2))
        for n in range(2, 14):
            await node.register(f"boot-{n}")
            agent = await node.send(node.plan(), f"boot-{n}")
            assert outcome(agent) == (PlanOutcome.SATISFIED, first)
            assert await node.send(node.plan(), f"boot-{n}", again=True, at=1) == agent
        await pair.end()
        await pair.start()
        assert outcome(await node.send(node.plan(), "boot-13", again=True))[1] == first
        assert await reshapes_of(pair.services[0]) == [first]
        assert await node.totals() == {"l": (HALF, 3), "r": (HALF, 3)}

    play(url, scenario)


def test_units_move_once_however_often_the_machine_boots(url: str) -> None:
    """A plan that moves some of the units would move more of them each time."""

    async def scenario(pair: Pair) -> None:
        node = await Node(pair).start()
        await pair.submit(provider_cases.ProviderCreate(node.left, "anything", node.root))
        some = ReshapePlan(
            moves=(Move(Place(node.root, "VCPU"), Place(node.left, "VCPU"), 1),),
            stay=frozenset(consumer_id(n) for n in node.guests),
            inventories={node.root: {"VCPU": Figures(reserved=0)}},
        )
        for n in range(1, 4):
            await node.register(f"boot-{n}")
            await node.send(some, f"boot-{n}")
            assert await node.totals() == {"root": (UNITS - 1, 4), "l": (1, 0)}

    play(url, scenario)


def test_what_others_have_shaped_is_satisfied(url: str) -> None:
    """An operator has committed the plan, or the agent is a new one: there is nothing to do."""

    async def scenario(pair: Pair) -> None:
        node = await Node(pair).start()
        await commit(pair.services[0], node.plan())
        await pair.submit(claim(12, node.right, VCPU=2))
        assert outcome(await node.send(node.plan())) == (PlanOutcome.SATISFIED, None)
        assert len(await reshapes_of(pair.services[0])) == 1
        await pair.submit(provider_cases.ProviderUpdate(node.right, "other", False, None, False))
        codes = await violations(node, node.plan(stay=frozenset({consumer_id(node.guests[0])})))
        assert ViolationCode.PROVIDER_EXISTS in codes

    play(url, scenario)


def test_an_undo_lasts_until_the_next_boot(url: str) -> None:
    """A restart of the agent does not carry the plan out again; the next boot does, as its file
    says.
    """

    async def scenario(pair: Pair) -> None:
        node = await Node(pair).start()
        _, first = outcome(await node.send(node.plan()))
        await node.undo(first)
        await node.register()
        assert outcome(await node.send(node.plan())) == (PlanOutcome.UNDONE, first)
        assert outcome(await node.send(node.plan(), again=True)) == (PlanOutcome.UNDONE, first)
        assert await node.totals() == GLOMMED
        await node.register("boot-2")
        done, second = outcome(await node.send(node.plan(), "boot-2"))
        assert (done, await node.totals()) == (PlanOutcome.DONE, SPLIT)
        assert second != first

    play(url, scenario)


def test_another_plan_and_the_first_again(url: str) -> None:
    """Each counts once in a boot, whichever was the last."""

    async def scenario(pair: Pair) -> None:
        node = await Node(pair).start()
        more = ReshapePlan(traits={node.right: frozenset({"STORAGE_DISK_SSD"})})
        _, first = outcome(await node.send(node.plan()))
        _, second = outcome(await node.send(more))
        assert outcome(await node.send(node.plan())) == (PlanOutcome.DONE, first)
        assert outcome(await node.send(more)) == (PlanOutcome.DONE, second)
        assert await reshapes_of(pair.services[0]) == [first, second]

    play(url, scenario)


def test_a_refused_plan_refuses_its_report(url: str) -> None:
    """All violations are in the answer; without the plan the same report counts."""

    async def scenario(pair: Pair) -> None:
        node = await Node(pair).start()
        bad = node.plan(
            moves=tuple(replace(one, assign={}) for one in node.plan().moves),
            traits={node.left: frozenset({"CUSTOM_NOT_THERE"})},
        )
        codes = await violations(node, bad)
        assert codes == {ViolationCode.UNASSIGNED, ViolationCode.TRAIT_UNKNOWN}
        agent = await pair.fleets[0].report(node.agent, report(1, 1, 7), TESTER)
        assert (agent.report_generation, agent.plan) == (1, None)
        node.generation = 1
        assert outcome(await node.send(node.plan()))[0] is PlanOutcome.DONE

    play(url, scenario)


def test_an_old_boot_changes_nothing(url: str) -> None:
    """Its plan is not looked at; nor is that of a report which is too old."""

    async def scenario(pair: Pair) -> None:
        node = await Node(pair).start()
        await node.register("boot-2")
        with refused(Code.SUPERSEDED_BOOT):
            await node.send(node.plan(), "boot-1")
        with refused(Code.STALE_BOOT):
            await node.send(node.plan(), "boot-9")
        await pair.fleets[0].report(node.agent, report(1, 1, 7, "boot-2"), TESTER)
        node.generation = -1
        with refused(Code.STALE_REPORT):
            await node.send(node.plan(), "boot-2")
        assert await node.totals() == GLOMMED

    play(url, scenario)


def test_an_agent_that_nobody_has_accepted(url: str) -> None:
    """It has no providers, so a plan of it concerns those of others."""

    async def scenario(pair: Pair) -> None:
        node = Node(pair)
        await agent_enroll(pair.fleets[0], agent_id(1), "g", {}, TESTER)
        await pair.fleets[0].register(agent_id(1), machine(1), TESTER)
        with refused(Code.NOT_ACCEPTED):
            await node.send(node.plan())

    play(url, scenario)


def beside(plan: ReshapePlan, **more: Any) -> ReshapePlan:
    """Return a plan with something more in its lists and objects."""
    merged: dict[str, Any] = {}
    for name, given in more.items():
        held: Any = getattr(plan, name)
        merged[name] = {**held, **given} if isinstance(given, dict) else held + given
    return replace(plan, **merged)


def hostile(node: Node, other: Node, part: ProviderId) -> dict[str, tuple[ReshapePlan, Any]]:
    """Return plans by which a machine would reach beyond itself, and how each is refused.

    Each is the plan of the node with one thing more, or in its place.
    """
    own, plan = ViolationCode.NOT_OWN, node.plan()
    operators, unknown = ViolationCode.OPERATORS_ONLY, ViolationCode.CONSUMER_UNKNOWN
    theirs_guest = consumer_id(other.guests[0])
    guests = [consumer_id(n) for n in node.guests]
    disk, theirs = Place(node.left, "DISK_GB"), Place(other.root, "VCPU")
    name, loose = node.child("x"), provider_id(77)
    child = uuid_for(node.root, name)
    aggregates = frozenset({AggregateId(guests[0])})

    def new(uuid: ProviderId, name: str, parent: ProviderId | None) -> ReshapePlan:
        return beside(plan, create=(NewProvider(uuid, name, parent),))

    return {
        "units of another": (beside(plan, moves=(Move(theirs, disk),)), own),
        "units for another": (beside(plan, moves=(Move(disk, theirs),)), own),
        "guests for another": (
            replace(plan, moves=(replace(plan.moves[0], assign={guests[0]: {other.root: 3}}),)),
            own,
        ),
        "their figures": (beside(plan, inventories={other.root: {"VCPU": Figures(9)}}), own),
        "their inventory": (beside(plan, inventories={other.root: {"VCPU": None}}), own),
        "their traits": (beside(plan, traits={other.root: frozenset()}), own),
        "their name": (beside(plan, rename={other.root: node.child("mine")}), own),
        "their child": (beside(plan, parents={other.root: node.root}), own),
        "their end": (replace(plan, delete=frozenset({other.root})), own),
        "their generation": (replace(plan, expect=Generations({other.root: 1})), own),
        "their guest": (replace(plan, stay=frozenset({theirs_guest})), unknown),
        "their guest's generation": (
            replace(plan, expect=Generations({}, {theirs_guest: 1})),
            unknown,
        ),
        "another's part": (beside(plan, rename={part: node.child("mine")}), own),
        "below another": (new(uuid_for(other.root, name), name, other.root), own),
        "a root": (new(child, name, None), own),
        "a UUID of choice": (new(loose, name, node.root), own),
        "away": (beside(plan, parents={part_id(1): None}), own),
        "a name": (new(uuid_for(node.root, "name-2_x"), "name-2_x", node.root), "name_invalid"),
        "own root": (beside(plan, rename={node.root: name}), operators),
        "own root's parent": (beside(plan, parents={node.root: None}), operators),
        "own root's traits": (beside(plan, traits={node.root: frozenset()}), operators),
        "own root's end": (replace(plan, delete=frozenset({node.root})), operators),
        "own root's aggregates": (beside(plan, aggregates={node.root: aggregates}), operators),
        "release": (replace(plan, release=frozenset(guests)), operators),
        "vacate": (replace(plan, vacate={guests[0]: frozenset({node.root})}), operators),
        "drift": (replace(plan, accept_drift=frozenset(guests)), operators),
        "trees": (replace(plan, cross_tree=True), operators),
        "a ratio": (
            beside(plan, inventories={node.left: {"VCPU": Figures(allocation_ratio=9.0)}}),
            operators,
        ),
        "a total": (beside(plan, inventories={node.root: {"DISK_GB": Figures(99)}}), operators),
    }


def test_a_hostile_machine_reaches_nothing_of_others(url: str) -> None:
    """Whatever its plan says: it is refused, and nothing of it happens."""

    async def scenario(pair: Pair) -> None:
        node, other = await Node(pair).start(), await Node(pair, 2).start()
        await ready(pair.fleets[0], 3)
        before = await other.totals()
        for name, (plan, code) in hostile(node, other, part_id(3)).items():
            assert code in await violations(node, plan), name
        assert await other.totals() == before
        assert await node.totals() == GLOMMED
        assert await reshapes_of(pair.services[0]) == []
        assert outcome(await node.send(node.plan()))[0] is PlanOutcome.DONE

    play(url, scenario)


def test_foreign_providers_are_not_even_locked(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan is refused before its batch; the batch would refuse it, too."""

    async def scenario(pair: Pair) -> None:
        node, other = await Node(pair).start(), await Node(pair, 2).start()
        plan = node.plan(moves=(Move(Place(other.root, "VCPU"), Place(node.root, "VCPU")),))
        asked: list[Any] = []
        submit = pair.services[0].transactor.submit

        async def watched(case: Any) -> Any:
            asked.append(case)
            return await submit(case)

        monkeypatch.setattr(pair.services[0].transactor, "submit", watched)
        assert await violations(node, plan) == {ViolationCode.NOT_OWN}
        assert not any(isinstance(one, plan_cases.AgentPlanned) for one in asked)
        monkeypatch.setattr(fleet_service, "check_own", lambda *_: None)
        assert await violations(node, plan) == {ViolationCode.NOT_OWN}
        assert any(isinstance(one, plan_cases.AgentPlanned) for one in asked)

    play(url, scenario)


def test_a_drain_cannot_be_evaded(url: str) -> None:
    """An operator has drained a child: its machine does not move the units out of it."""

    async def scenario(pair: Pair) -> None:
        node = await Node(pair).start()
        await node.send(node.plan())
        await pair.submit(operator_cases.ProviderDrain(node.left, TESTER, "broken"))
        away = ReshapePlan(
            moves=(
                Move(
                    Place(node.left, "VCPU"),
                    Place(node.right, "VCPU"),
                    assign={consumer_id(node.guests[0]): {node.right: 3}},
                ),
            )
        )
        assert await violations(node, away) == {ViolationCode.OPERATORS_ONLY}
        await pair.submit(operator_cases.ProviderDrain(node.left, TESTER, "", drained=False))
        assert outcome(await node.send(away))[0] is PlanOutcome.DONE

    play(url, scenario)


def test_children_inherit_what_closes_the_machine(url: str) -> None:
    """A plan of a drained machine opens nothing."""

    async def scenario(pair: Pair) -> None:
        node = await Node(pair).start()
        drain = (node.agent, Action.DRAIN, "broken", TESTER)
        await agent_policy(pair.fleets[0], *drain)
        await node.send(node.plan())
        catalog = await pair.services[0].index.current()
        for uuid in (node.left, node.right):
            record = catalog.record(uuid)
            assert record is not None
            assert record.provider.withheld is not None

    play(url, scenario)


def test_only_so_many_plans_wait(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are asked to come again, so that claims are not behind all of them."""
    monkeypatch.setattr(plan_bounds, "PLANS_WAITING_MAX", 1)

    async def scenario(pair: Pair) -> None:
        nodes = [await Node(pair, n).start() for n in (1, 2, 3)]
        found = await outcomes(*(node.send(node.plan()) for node in nodes))
        assert Code.OVERLOADED in found
        for node in nodes:
            await node.send(node.plan())
            assert await node.totals() == SPLIT

    play(url, scenario)


def test_one_machine_takes_few_places(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not fill the line of plans by sending many at once."""
    monkeypatch.setattr(plan_bounds, "PLANS_WAITING_MAX", 4)

    async def scenario(pair: Pair) -> None:
        node, other = await Node(pair).start(), await Node(pair, 2).start()
        many = [node.plan(fungible=frozenset({f"CUSTOM_{n}"})) for n in range(8)]
        *found, last = await outcomes(*map(node.send, many), other.send(other.plan()))
        # One that is done leaves its place to another, so it is not known how many are refused.
        assert Code.OVERLOADED in found
        assert not isinstance(last, Code)
        assert await other.totals() == SPLIT

    play(url, scenario)


def test_a_machine_changes_its_shape_a_few_times_an_hour(url: str) -> None:
    """Each time leaves a record, and the id of a boot is what the machine says. Others go on."""

    async def scenario(pair: Pair) -> None:
        node, other = await Node(pair).start(), await Node(pair, 2).start()
        await node.send(node.plan())
        names = [{node.left: node.child(f"x{n}")} for n in range(MACHINE_RESHAPES_MAX)]
        for name in names[:-1]:
            await node.send(ReshapePlan(rename=name))
        with refused(Code.LIMIT_EXCEEDED):
            await node.send(ReshapePlan(rename=names[-1]))
        assert len(await reshapes_of(pair.services[0])) == MACHINE_RESHAPES_MAX
        assert outcome(await other.send(other.plan()))[0] is PlanOutcome.DONE

    play(url, scenario)


def test_consumers_elsewhere_are_nobodys_business(url: str) -> None:
    """A refusal is the same whether a consumer exists elsewhere or nowhere, and has no figures."""

    async def scenario(pair: Pair) -> None:
        node, other = await Node(pair).start(), await Node(pair, 2).start()
        there, nowhere = consumer_id(other.guests[0]), consumer_id(99)
        said = []
        for uuid in (there, nowhere):
            wish = node.plan(expect=Generations({}, {uuid: 77}))
            with pytest.raises(ReshapeRefusal) as caught:
                await node.send(wish)
            said.append([replace(one, consumer=None) for one in caught.value.planned.violations])
            assert not caught.value.planned.generations.consumers
            said[-1] = [replace(one, message=one.message.replace(uuid, "")) for one in said[-1]]
        assert said[0] == said[1]

    play(url, scenario)


def test_a_reshape_of_somebody_else_is_not_taken_for_it(url: str) -> None:
    """Another one may have the id that this one would get: the plan is refused, and not done."""

    async def scenario(pair: Pair) -> None:
        node = await Node(pair).start()
        taken = plans.reshape_id_for(node.agent, BOOT, request_of(node.plan()))
        other = ReshapePlan(traits={node.root: frozenset({"STORAGE_DISK_SSD"})})
        await pair.services[0].reshapes.carry_out(other, Wish(taken, "x", None, ""), TESTER)
        with refused(Code.KEY_REUSED):
            await node.send(node.plan())
        assert await node.totals() == GLOMMED

    play(url, scenario)
