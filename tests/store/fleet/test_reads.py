"""Lists of agents and groups: every filter, pages that are stable while rows change, counts."""

import asyncio
from itertools import product
from typing import Any

import pytest

from moorage.core.fleet.facts import Changes, Keys
from moorage.core.fleet.model import Agent, Liveness, Policy, Readiness, State
from moorage.core.fleet.offers import is_offered
from moorage.store.api import Engine
from moorage.store.fleet import reads
from moorage.store.fleet.reads import AgentFilter, Window
from tests.service.fleet.machines import agent_id
from tests.store.fleet.agents import DEFAULT, agent, group, offering, run, saved

LABELS: list[dict[str, str]] = [
    {},
    {"rack": "a"},
    {"rack": "b", "zone": "a"},
    {"rack": ""},
    {"": "rack", "q\"\\'": "$.rack", "a.b": "ü", "0": "%"},
]


def every_kind() -> list[Agent]:
    """Return an agent for each combination of the axes, by UUID."""
    axes = product(("a", "b"), Policy, State, Readiness, Liveness)
    return [
        offering(
            n,
            group=name,
            policy=policy,
            state=state,
            readiness=readiness,
            liveness=liveness,
            labels=LABELS[n % len(LABELS)],
        )
        for n, (name, policy, state, readiness, liveness) in enumerate(axes, 1)
    ]


FILTERS: list[dict[str, Any]] = [
    {},
    *({"group": name} for name in ("a", "b", "none", "")),
    *({"policy": one.value} for one in Policy),
    *({"state": one.value} for one in State),
    *({"readiness": one.value} for one in Readiness),
    *({"liveness": one.value} for one in Liveness),
    *({"offered": one} for one in (True, False)),
    *({"label": name} for name in ("rack", "zone", "", "q\"\\'", "a.b", "a", "$.rack", "0")),
    *({"label": "rack", "label_value": value} for value in ("a", "", "%", "rack")),
    {"label": "a.b", "label_value": "ü"},
    {"group": "a", "policy": "in_service", "state": "active", "readiness": "ready"},
    {"liveness": "fresh", "offered": False, "label": "rack", "label_value": "b"},
    {"group": "b", "offered": True, "label": "zone"},
    {"policy": "expunged", "offered": True},
]


def matches(one: Agent, wanted: dict[str, Any]) -> bool:
    """Return whether an agent should be listed."""
    axes = ("group", "policy", "state", "readiness", "liveness")
    has: dict[str, Any] = {name: getattr(one, name) for name in axes}
    has["offered"] = is_offered(one)
    if wanted.get("label") is not None and wanted["label"] not in one.labels:
        return False
    if wanted.get("label_value") not in (None, one.labels.get(wanted.get("label", ""))):
        return False
    return all(has[name] == value for name, value in wanted.items() if name in has)


def test_every_filter(engine: Engine) -> None:
    """Each filter, alone and with others, lists exactly the agents that match, in order."""
    agents = every_kind()

    async def scenario() -> None:
        await saved(engine, group("a"), group("b"), *agents)
        for wanted in FILTERS:
            expected = [one for one in agents if matches(one, wanted)]
            assert await engine.read(reads.agents_list(AgentFilter(**wanted), "", 999)) == expected
            half = expected[: len(expected) // 2]
            after = half[-1].uuid if half else ""
            rest = await engine.read(reads.agents_list(AgentFilter(**wanted), after, 3))
            assert rest == expected[len(half) :][:3], wanted

    asyncio.run(scenario())


async def pages(
    engine: Engine, wanted: AgentFilter, between: list[list[Agent]]
) -> list[list[Agent]]:
    """Read pages of two until one is empty; before each further page save some agents."""
    found: list[list[Agent]] = []
    after = ""
    while page := await engine.read(reads.agents_list(wanted, after, 2)):
        found.append(page)
        after = page[-1].uuid
        if between:
            await saved(engine, *between.pop(0))
    return found


def test_pages_are_stable_while_agents_come_and_go(engine: Engine) -> None:
    """What stays is listed exactly once, whatever is added, changed or leaves the filter."""

    async def scenario() -> None:
        stays = [agent(n, group="a") for n in (10, 20, 30, 40, 50, 60)]
        await saved(engine, group("a"), group("b"), *stays)
        between = [
            [agent(5, group="a"), agent(25, group="a")],  # before and after the cursor
            # The agent of the cursor leaves, and a later one; another changes.
            [agent(30, group="b"), agent(40, group="b"), agent(60, group="a", labels={"x": "y"})],
        ]
        found = await pages(engine, AgentFilter(group="a"), between)
        numbers = [[one.number for one in page] for page in found]
        assert numbers == [[10, 20], [25, 30], [50, 60]]
        assert found[-1][-1].labels == {"x": "y"}

    asyncio.run(scenario())


def test_groups_in_windows(engine: Engine) -> None:
    """Groups come by name; the group of the cursor may be gone."""

    async def scenario() -> None:
        names = ["a", "a/b", "b", "z"]
        await saved(engine, *(group(name) for name in names))
        assert await engine.read(reads.groups_window("", 2)) == [group("a"), group("a/b")]
        await run(engine, Keys(), lambda _: Changes(groups={"a/b": None, "a": None}))
        assert await engine.read(reads.groups_window("a/b", 9)) == [
            group("b"),
            DEFAULT,
            group("z"),
        ]
        assert await engine.read(reads.groups_window("z", 9)) == []
        assert await engine.read(reads.group_load("a")) is None

    asyncio.run(scenario())


def test_members_are_counted(engine: Engine) -> None:
    """Members are active; only those in service are counted by liveness."""

    async def scenario() -> None:
        assert await engine.read(reads.groups_count()) == reads.GroupCounts({}, {})
        await saved(
            engine,
            group("a"),
            agent(1, group="a"),
            agent(2, group="a", liveness=Liveness.LATE),
            agent(3, group="a", liveness=Liveness.LATE),
            agent(4, group="a", liveness=Liveness.LOST, policy=Policy.NO_PROVISION),
            agent(5, group="a", state=State.DECOMMISSIONED),
            agent(6, state=State.DECOMMISSIONED),
            agent(7, policy=Policy.EXPUNGED),
        )
        assert await engine.read(reads.groups_count()) == reads.GroupCounts(
            {"a": 4, "default": 1}, {("a", "fresh"): 1, ("a", "late"): 2}
        )

    asyncio.run(scenario())


def test_an_unknown_agent(engine: Engine) -> None:
    """There is none, and no page after the last agent."""

    async def scenario() -> None:
        await saved(engine, agent(1))
        assert await engine.read(reads.agent_load(agent_id(2))) is None
        assert await engine.read(reads.readable_agents_window(agent_id(1), 9)) == Window(
            [], [], None
        )

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["rack", "$", "$.rack", "$x", "$[", "", "[0]", 'a"b\\', "ü"])
def test_the_name_of_a_label_is_only_a_name(engine: Engine, name: str) -> None:
    """It is compared as a whole: no path, no part, no other letter case."""

    async def scenario() -> None:
        await saved(engine, agent(1, labels={name: "Aisle-1"}), agent(2, labels={"other": "x"}))
        for wanted, found in (
            (AgentFilter(label=name), [1]),
            (AgentFilter(label=name, label_value="Aisle-1"), [1]),
            (AgentFilter(label=name, label_value="aisle-1"), []),
            (AgentFilter(label=name, label_value="Aisle"), []),
            (AgentFilter(label=name, label_value=""), []),
            (AgentFilter(label=f"{name}x"), []),
            (AgentFilter(label=f"$.{name}"), []),
        ):
            listed = await engine.read(reads.agents_list(wanted, "", 9))
            assert [one.number for one in listed] == found, wanted

    asyncio.run(scenario())
