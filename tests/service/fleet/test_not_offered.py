"""An explanation names the agents that are in the way of a query, and only these."""

from pathlib import Path

from moorage.core.clock import SECOND
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.model import Goal
from moorage.core.fleet.policy import Action
from moorage.core.ids import ProviderId
from moorage.core.ledger.requests import AggregateFilter, CandidateQuery, Group, TraitFilter
from moorage.service.fleet.not_offered import not_offering
from tests.service.fleet.alone import play
from tests.service.fleet.machines import (
    PAGES,
    agent_desired,
    agent_id,
    agent_policy,
    agent_put,
    machine,
    part_id,
    ready,
    report,
)
from tests.service.running import TESTER, Running, claim

Found = dict[int, tuple[ProviderId, str, str]]


async def found(one: Running, query: CandidateQuery) -> Found:
    """Return what is found, by the number of the agent."""
    catalog = await one.service.index.current()
    work = not_offering(catalog, one.service.fleet.directory.agents(), query)
    return {
        int(each.agent.uuid[:8]): (each.provider, each.resource_class, each.reason)
        for each in await one.service.searches.reading(work)
    }


ANY = TraitFilter()


def needing(pages: int, traits: TraitFilter = ANY) -> CandidateQuery:
    """A query for pages."""
    group = Group("", {PAGES: pages}, traits, AggregateFilter())
    return CandidateQuery((group,))


def test_each_reason(tmp_path: Path) -> None:
    """Every axis that closes a machine is a reason; a machine that offers everything is not."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        for n in range(1, 8):
            await ready(fleet, n)
        await agent_policy(fleet, agent_id(2), Action.DRAIN, "new disks", TESTER)
        await agent_policy(fleet, agent_id(3), Action.EXPUNGE, "burnt", TESTER)
        await fleet.register(agent_id(4), machine(4, "boot-2"), TESTER)
        await fleet.report(agent_id(5), report(5, 2, 60), TESTER)
        await fleet.report(agent_id(6), report(6, 2, 0), TESTER)
        for _ in range(11):
            one.clock.at += SECOND
            for n in range(1, 7):
                known = fleet.directory.get(agent_id(n))
                assert known is not None and known.boot_id is not None
                await fleet.alive(agent_id(n), known.boot_id, known.report_generation)
            await fleet.liveness_loop.look()
        assert await found(one, needing(80)) == {
            2: (part_id(2), PAGES, "no_provision"),
            3: (part_id(3), PAGES, "expunged"),
            4: (part_id(4), PAGES, "preparing"),
            5: (part_id(5), PAGES, "not_there"),
            6: (part_id(6), PAGES, "failed"),
            7: (part_id(7), PAGES, "late"),
        }
        assert {*await found(one, needing(60))} == {2, 3, 4, 6, 7}  # agent 5 offers that

    play(tmp_path, scenario)


def test_what_would_not_serve_anyway_is_not_named(tmp_path: Path) -> None:
    """Too few are desired, or others have them, or a trait is missing."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        for n in (1, 2, 3):
            await ready(fleet, n, pages=50 if n == 1 else 100)
        await one.submit(claim(1, part_id(2), **{PAGES: 40}))
        for n in (1, 2, 3):
            await agent_policy(fleet, agent_id(n), Action.DRAIN, "", TESTER)
        assert {*await found(one, needing(80))} == {3}
        assert {*await found(one, needing(60))} == {2, 3}
        ssd = TraitFilter((), frozenset({"STORAGE_DISK_SSD"}))
        assert {*await found(one, needing(80, ssd))} == {3}
        (group,) = needing(80).groups
        required = TraitFilter((frozenset({"STORAGE_DISK_SSD"}),))
        suffixed = Group("_A", group.resources, required, AggregateFilter())
        assert await found(one, CandidateQuery((suffixed,))) == {}
        inside = Group("", group.resources, TraitFilter(), AggregateFilter(), in_tree=part_id(2))
        assert await found(one, CandidateQuery((inside,))) == {}

    play(tmp_path, scenario)


def test_the_whole_tree_of_a_drained_host(tmp_path: Path) -> None:
    """A drain closes what Nova wrote on the root, too; silence closes the agent's own only."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        root = await one.provider(1, VCPU=8)
        await agent_put(fleet, agent_id(1), "default", {}, None, TESTER, root)
        await fleet.register(agent_id(1), machine(1, root=root), TESTER)
        spec = DesiredSpec(PAGES, goal=Goal(amount=100))
        await agent_desired(fleet, agent_id(1), spec, "", TESTER)
        vcpus = CandidateQuery((Group("", {"VCPU": 4}, TraitFilter(), AggregateFilter()),))
        assert await found(one, vcpus) == {}
        assert await found(one, needing(80)) == {1: (part_id(1), PAGES, "preparing")}
        await agent_policy(fleet, agent_id(1), Action.DRAIN, "", TESTER)
        assert await found(one, vcpus) == {1: (root, "VCPU", "no_provision")}

    play(tmp_path, scenario)
