"""Every combination of the axes and every message: the tables of docs/reference/agents.md hold."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.core.errors import Error
from moorage.core.fleet import desired, groups, offers, policy, registering, reports, starts
from moorage.core.fleet.facts import Changes
from moorage.core.fleet.model import Agent, Goal, Liveness, Phase, Policy, Readiness, State
from moorage.core.fleet.starts import ConsumerPlace
from moorage.core.ids import ConsumerId
from tests.core.fleet.build import A1, C1, C2, N0, ROOT, SMALL, World, failure, ready, spec

TEXT = (Path(__file__).resolve().parents[3] / "docs/reference/agents.md").read_text()

AXES = (tuple(State), tuple(Policy), tuple(Readiness), tuple(Liveness))
COMBINATIONS = list(product(*AXES))

Row = dict[str, str]


def tables(first: str) -> Iterator[Row]:
    """Yield the rows of all tables whose first column has this name, by column."""
    columns: list[str] | None = None
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            columns = None
        elif columns is None:
            columns = cells
        elif columns[0] == first and not set(line) <= set("|-"):
            yield dict(zip(columns, cells, strict=True))


def one_row(rows: list[Row], **wanted: str) -> Row:
    """Return the only row that matches; a cell lists values, or is `any`."""
    found = [
        row
        for row in rows
        if all(
            row[name] == "any" or value in row[name].split(", ") for name, value in wanted.items()
        )
    ]
    assert len(found) == 1, f"{wanted} matches {len(found)} rows"
    return found[0]


OFFERS = [row for row in tables("state") if "own classes" in row]
READINESS = list(tables("phase"))
MESSAGES: dict[str, list[Row]] = {}
for _row in tables("message"):
    MESSAGES.setdefault(_row["message"], []).append(_row)


def world_of(
    state: State, wanted: Policy, readiness: Readiness, liveness: Liveness, **more: Any
) -> World:
    """Return a world whose agent has these axes.

    It is in its second boot, should have the 50 units of its group, and has 30 after its third
    report. C1 is confirmed; places up to generation 5 are from before this boot.
    """
    world = World()
    world.group("default", **{SMALL: Goal(amount=50)})
    world.create()
    if readiness is not Readiness.UNREGISTERED:
        world.create(root=more.get("root"))
        world.register(**more)
        world.report(50)
        world.register("boot-2", born={N0: 5}, **more)
        world.report(10)
        world.report(30, consumers=frozenset({C1}))
    axes = {"state": state, "policy": wanted, "readiness": readiness, "liveness": liveness}
    world.do(Changes(agents={A1: replace(world.agent(), **axes)}))
    return world


def shown(reason: str | None, otherwise: str) -> str:
    """Return a reason as the reference shows it."""
    return otherwise if reason is None else f"`{reason}`"


@pytest.mark.parametrize(
    ("column", "root"), [("tree, created root", None), ("tree, given root", ROOT)]
)
def test_what_is_offered(column: str, root: str | None) -> None:
    """What is offered of own classes, and whether the tree is open, in every combination."""
    for axes in COMBINATIONS:
        world = world_of(*axes, root=root)
        agent = replace(world.agent(), owns_root=root is None)
        state, wanted, readiness, liveness = axes
        row = one_row(OFFERS, state=state, policy=wanted, readiness=readiness, liveness=liveness)
        assert shown(offers.why_nothing(agent), "offered") == row["own classes"], axes
        assert shown(offers.why_withheld(agent), "open") == row[column], axes
        assert offers.is_offered(agent) == (row["own classes"] == "offered"), axes
        for part in agent.parts.values():
            offered = offers.offered(agent, part, part.classes[SMALL])
            assert offered == (30 if row["own classes"] == "offered" else 0), axes
            why = offers.why_less(agent, part, part.classes[SMALL])
            expected = row["own classes"].strip("`")
            assert why == ("not_there" if expected == "offered" else expected), axes


def test_every_row_is_used() -> None:
    """No row of the tables is for combinations that do not exist."""
    axes = ("state", "policy", "readiness", "liveness")
    known = dict(zip(axes, AXES, strict=True))
    for rows in (OFFERS, *MESSAGES.values()):
        for row in rows:
            for name in set(axes) & set(row):
                assert row[name] == "any" or set(row[name].split(", ")) <= set(known[name]), row


AMOUNTS = {"nothing desired": (0, 0), "all": (50, 50), "some": (50, 20), "none": (50, 0)}


@pytest.mark.parametrize("liveness", Liveness)
@pytest.mark.parametrize("wanted", Policy)
def test_readiness(wanted: Policy, liveness: Liveness) -> None:
    """Every report leads to the readiness of the table, whatever was before it."""
    for phase, there, failed, before in product(
        Phase, AMOUNTS, (True, False), set(Readiness) - {Readiness.UNREGISTERED}
    ):
        row = one_row(READINESS, phase=phase, there=there, **{"failure reported": yes(failed)})
        amount, actual = AMOUNTS[there]
        world = World()
        world.create()
        world.register()
        world.goal(Goal(amount=amount))
        axes = {"policy": wanted, "liveness": liveness, "readiness": before}
        world.do(Changes(agents={A1: replace(world.agent(), **axes)}))
        world.report(actual, phase=phase, failure=failure() if failed else None)
        assert world.agent().readiness == row["readiness"], (row, before)


def yes(value: bool) -> str:
    """Return a truth value as the reference shows it."""
    return "yes" if value else "no"


Message = Callable[[World], Any]


def register(world: World, boot: str) -> Changes:
    """Register as the agent did."""
    root = ROOT if world.agent().root == ROOT else None
    return registering.register(world.facts, world.now, A1, spec(boot, root=root))


def report(world: World, **more: Any) -> Changes:
    """Send a report of 30 units with C1."""
    words: dict[str, Any] = {"actual": 30, "boot_id": "boot-2", "consumers": frozenset({C1})}
    return reports.report(world.facts, world.now, A1, world.next(**(words | more)))


def beat(world: World, boot: str = "boot-2", more: int = 0) -> Changes:
    """Send a sign of life."""
    agent = world.agent()
    reports.check_alive(agent, boot, agent.report_generation + more)
    return Changes()


def start(world: World, consumer: ConsumerId, amount: int) -> str:
    """Ask whether a consumer with an old place may start."""
    places = [ConsumerPlace(consumer, N0, 5, {SMALL: amount})]
    return str(starts.may_start(world.agent(), "boot-2", consumer, places).reason)


def decommission(world: World, used: bool = False, force: bool = False) -> Changes:
    """Decommission the machine."""
    return policy.decommission(world.facts, world.now, A1, "", "ann", used=used, force=force)


SENT: dict[str, Message] = {
    "enroll": lambda w: registering.enroll(w.facts, w.now, A1, "default", {}, "robot"),
    "register, new boot": lambda w: register(w, "boot-3"),
    "register, same boot, equal": lambda w: register(w, "boot-2"),
    "register, superseded boot": lambda w: register(w, "boot-1"),
    "report, next generation": report,
    "report, a generation skipped": lambda w: report(w, report_generation=9),
    "report, repeated": lambda w: report(w, report_generation=3),
    "report, same generation, different": lambda w: report(
        w, report_generation=3, consumers=frozenset()
    ),
    "report, lower generation": lambda w: report(w, report_generation=2),
    "report, a class omitted": lambda w: report(w, actual={N0: {}}),
    "report, unknown boot": lambda w: report(w, boot_id="boot-3"),
    "report, superseded boot": lambda w: report(w, boot_id="boot-1"),
    "alive": beat,
    "alive, lower generation": lambda w: beat(w, more=-1),
    "alive, higher generation": lambda w: beat(w, more=1),
    "alive, superseded boot": lambda w: beat(w, "boot-1"),
    "start, confirmed": lambda w: start(w, C1, 30),
    "start, unconfirmed": lambda w: start(w, C2, 30),
    "start, too little is there": lambda w: start(w, C1, 31),
    "put, other labels": lambda w: registering.create(
        w.facts, w.now, A1, "default", {"a": "b"}, None, "ann"
    ),
    "desired, another amount": lambda w: desired.set_goal(
        w.facts, w.now, A1, desired.DesiredSpec(SMALL, None, Goal(amount=60))
    ),
    "drain": lambda w: policy.drain(w.facts, w.now, A1, "", "ann"),
    "resume": lambda w: policy.resume(w.facts, w.now, A1, "", "ann"),
    "expunge": lambda w: policy.expunge(w.facts, w.now, A1, "", "ann"),
    "decommission": decommission,
    "decommission, used": lambda w: decommission(w, used=True),
    "decommission, used, forced": lambda w: decommission(w, used=True, force=True),
    "group, another default": lambda w: Changes(
        agents=groups.put(w.facts, w.now, "default", {SMALL: Goal(amount=1)}, [A1]).agents
    ),
    "placement, another total": lambda w: desired.overwritten(w.facts, w.now, A1, {(N0, SMALL): 7}),
}


def test_every_message_is_documented() -> None:
    """The tables have exactly the messages that are tried here."""
    assert set(MESSAGES) == set(SENT)


def result_of(world: World, message: Message) -> str:
    """Return what a message leads to, as the reference shows it; a refusal changes nothing."""
    before = world.agent()
    try:
        answer = message(world)
    except Error as refusal:
        assert world.agent() == before
        return str(refusal.code)
    if not isinstance(answer, Changes):
        return str(answer)
    world.do(answer)
    assert bool(answer) == (world.agent() != before)
    return "changed" if answer else "unchanged"


@pytest.mark.parametrize("name", SENT)
@pytest.mark.parametrize("root", [None, ROOT])
def test_messages(name: str, root: str | None) -> None:
    """Every message leads to the documented result, and does not touch the other axes."""
    for axes in COMBINATIONS:
        world = world_of(*axes, root=root)
        before = world.agent()
        state, wanted, readiness, _ = axes
        row = one_row(MESSAGES[name], state=state, policy=wanted, readiness=readiness)
        assert f"`{result_of(world, SENT[name])}`" == row["result"], axes
        check_axes(name, before, world.agent())


def check_axes(name: str, before: Agent, after: Agent) -> None:
    """Assert that a message moves no axis but its own, and raises no amount by itself."""
    kind = name.partition(",")[0]
    operators = kind in ("drain", "resume", "expunge", "decommission")
    assert operators or (after.state, after.policy) == (before.state, before.policy)
    assert kind in ("register", "report") or after.readiness is before.readiness
    assert after.liveness is before.liveness
    if kind != "report":
        for uuid, part in before.parts.items():
            for key, managed in part.classes.items():
                assert after.parts[uuid].classes[key].actual <= managed.actual


def test_a_ready_machine_is_the_one_that_is_offered() -> None:
    """The builder's ready machine offers what it has: the tables are not vacuous."""
    world = ready()
    part = world.agent().parts[N0]
    assert offers.offered(world.agent(), part, part.classes[SMALL]) == 50
    assert offers.why_less(world.agent(), part, part.classes[SMALL]) is None
