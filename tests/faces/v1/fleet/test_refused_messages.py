"""What agents are refused, with which status, code and message; nothing is stored.

The rules are tested where they stand, in `tests/core/fleet`; here is how they reach an agent.
"""

from collections.abc import Callable
from uuid import uuid4

import pytest

from tests.faces.v1.fleet.machine import PAGES, PLACEMENT, Machine, check_refused
from tests.faces.v1.native import Native, Response

Case = tuple[Callable[[Machine], Response], int, str, tuple[str, ...]]

UNKNOWN = str(uuid4())


def offering(native: Native) -> Machine:
    """Return a machine in its second boot that has sent two reports in it."""
    machine = Machine(native).offering()
    machine.boot = "boot-2"
    assert machine.register().status == 200
    assert machine.report().status == machine.report().status == 200
    return machine


LATER: dict[str, Case] = {
    "report, superseded boot": (
        lambda one: one.report(boot_id="boot-1"),
        409,
        "superseded_boot",
        ("boot-1", "boot-2", "give each machine its own"),
    ),
    "report, unknown boot": (
        lambda one: one.report(boot_id="boot-9"),
        409,
        "stale_boot",
        ("'boot-2', not 'boot-9'", "register again"),
    ),
    "report, lower generation": (
        lambda one: one.report(report_generation=one.generation - 1),
        409,
        "stale_report",
        ("has report 3", "continue with report 4"),
    ),
    "report, same generation, different": (
        lambda one: one.report(report_generation=one.generation, actual={one.part: {PAGES: 7}}),
        409,
        "report_conflict",
        ("another report 3", "as report 4"),
    ),
    "report, a class omitted": (
        lambda one: one.report(actual={one.part: {}}),
        400,
        "invalid",
        (f"omits '{PAGES}'", "Add the class"),
    ),
    "report, a provider omitted": (
        lambda one: one.report(actual={}),
        400,
        "invalid",
        (f"omits '{PAGES}'", "Add the class"),
    ),
    "report, a class too many": (
        lambda one: one.report(actual={one.part: {PAGES: 1, "CUSTOM_X": 1}}),
        400,
        "invalid",
        ("'CUSTOM_X'", "register again"),
    ),
    "report, a provider too many": (
        lambda one: one.report(actual={one.part: {PAGES: 1}, UNKNOWN: {}}),
        400,
        "invalid",
        (UNKNOWN, "omit it"),
    ),
    "alive, superseded boot": (
        lambda one: one.alive(boot_id="boot-1"),
        409,
        "superseded_boot",
        ("boot-1", "give each machine its own"),
    ),
    "alive, unknown boot": (
        lambda one: one.alive(boot_id="boot-9"),
        409,
        "stale_boot",
        ("register again",),
    ),
    "alive, lower generation": (
        lambda one: one.alive(report_generation=1),
        409,
        "stale_report",
        ("continue with report 4",),
    ),
    "alive, higher generation": (
        lambda one: one.alive(report_generation=4),
        409,
        "report_conflict",
        ("does not have report 4", "register, then send"),
    ),
    "register, superseded boot": (
        lambda one: one.register(boot_id="boot-1"),
        409,
        "superseded_boot",
        ("boot-1", "give each machine its own"),
    ),
    "register, another root": (
        lambda one: one.register(root=UNKNOWN),
        400,
        "invalid",
        ("cannot change", "register without a root"),
    ),
    "register, a part that moves": (
        lambda one: one.register(
            parts=[
                {"provider": one.part_id("x"), "name": "x", "classes": {}},
                {
                    "provider": one.part,
                    "name": "numa0",
                    "parent": one.part_id("x"),
                    "classes": {},
                },
            ]
        ),
        400,
        "invalid",
        ("cannot move", "another name"),
    ),
    "start, no place": (
        lambda one: one.start(UNKNOWN),
        404,
        "place_not_found",
        (UNKNOWN,),
    ),
    "start, another boot": (
        lambda one: one.start(UNKNOWN, "?boot_id=boot-9"),
        409,
        "stale_boot",
        ("register again",),
    ),
    "start, superseded boot": (
        lambda one: one.start(UNKNOWN, "?boot_id=boot-1"),
        409,
        "superseded_boot",
        ("give each machine its own",),
    ),
    "start, no boot": (
        lambda one: one.start(UNKNOWN, ""),
        400,
        "invalid",
        ("boot_id is required",),
    ),
    "start, too long a wait": (
        lambda one: one.start(UNKNOWN, "?boot_id=boot-2&wait=61"),
        400,
        "invalid",
        ("wait must be from 0 to 60",),
    ),
    "start, no consumer": (
        lambda one: one.start("x"),
        400,
        "invalid",
        ("consumer must be a UUID",),
    ),
}


@pytest.mark.parametrize("name", LATER)
def test_messages_of_a_machine_that_offers(native: Native, name: str) -> None:
    """Each is refused as the reference says, and what is offered stays."""
    send, status, code, words = LATER[name]
    machine = offering(native)
    before = machine.stored()
    check_refused(machine, send(machine), before, status, code, *words)
    assert machine.report().status == 200  # its next valid message is accepted


UNREGISTERED: dict[str, Case] = {
    "report": (lambda one: one.report(), 409, "stale_boot", ("never registered", "register first")),
    "alive": (lambda one: one.alive(), 409, "stale_boot", ("register first",)),
    "start": (lambda one: one.start(UNKNOWN), 409, "stale_boot", ("register first",)),
    "desired": (
        lambda one: one.operate("desired", resource_class=PAGES, amount=1),
        400,
        "invalid",
        ("last registration", "default of the agent's group"),
    ),
    "register with a root that is not there": (
        lambda one: one.register(root=one.uuid),
        404,
        "provider_not_found",
        ("No resource provider with uuid",),
    ),
    "register with a root that was not given": (
        lambda one: one.register(root=UNKNOWN),
        409,
        "not_accepted",
        ("An operator must give", "moorage agent root", UNKNOWN),
    ),
    "register a class that is none": (
        lambda one: one.register(
            parts=[{"provider": one.part, "name": "numa0", "classes": {"PONIES": {"eligible": 1}}}]
        ),
        422,
        "class_unknown",
        ("'PONIES'", "begins with CUSTOM_"),
    ),
    "enroll": (
        lambda one: one.operate("enroll", group="default"),
        409,
        "agent_exists",
        ("already an agent", "ask an operator"),
    ),
}


@pytest.mark.parametrize("name", UNREGISTERED)
def test_messages_of_an_agent_that_has_not_registered(native: Native, name: str) -> None:
    """It must register first, and a register that is refused leaves nothing."""
    send, status, code, words = UNREGISTERED[name]
    machine = Machine(native)
    assert machine.put().status == 200
    before = machine.stored()
    check_refused(machine, send(machine), before, status, code, *words)
    assert machine.register().status == 200


EVERYTHING: dict[str, Callable[[Machine], Response]] = {
    "enroll": lambda one: one.operate("enroll", group="default"),
    "register": lambda one: one.register(),
    "register, another boot": lambda one: one.register(boot_id="boot-2"),
    "report": lambda one: one.report(),
    "alive": lambda one: one.alive(),
    "start": lambda one: one.start(UNKNOWN),
    "put": lambda one: one.put(labels={"a": "b"}),
    "desired": lambda one: one.operate("desired", resource_class=PAGES, amount=1),
    "drain": lambda one: one.operate("drain"),
    "resume": lambda one: one.operate("resume"),
    "expunge": lambda one: one.operate("expunge"),
}


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_decommissioned_agent_must_stop(native: Native, name: str) -> None:
    """410: agents end then; only another UUID helps."""
    machine = Machine(native).offering().decommissioned()
    before = machine.stored()
    answer = EVERYTHING[name](machine)
    words = ("stop it", "another UUID")
    check_refused(machine, answer, before, 410, "decommissioned", *words)


@pytest.mark.parametrize("name", sorted({*EVERYTHING} - {"enroll", "put"}))
def test_an_agent_that_nobody_has_created(native: Native, name: str) -> None:
    """404: an operator must create it, or it must enroll; nothing is created by itself."""
    machine = Machine(native)
    before = machine.stored()
    assert before.agent is None
    answer = EVERYTHING[name](machine)
    check_refused(machine, answer, before, 404, "agent_not_found", machine.uuid)


def own_root(native: Native) -> tuple[Machine, str]:
    """Return a machine below a provider of another writer, such as Nova, and that provider."""
    machine = Machine(native)
    root = native.provider(f"compute-{machine.host}")
    assert machine.put(root=root).status == 200
    assert machine.register(root=root).status == 200
    return machine, root


def test_a_root_that_belongs_to_nova(native: Native) -> None:
    """An agent cannot manage classes of a root that others write: it registers a child."""
    machine, root = own_root(native)
    part = {"provider": root, "name": "", "classes": {PAGES: {"eligible": 1}}}
    before = machine.stored()
    answer = machine.register(root=root, parts=[part])
    words = ("another writer", "Register a child")
    check_refused(machine, answer, before, 409, "class_managed", *words)


def test_a_root_of_another_agent(native: Native) -> None:
    """A machine has one agent."""
    first, root = own_root(native)
    second = Machine(native)
    assert second.put().status == 200
    before = second.stored()
    answer = second.register(root=root)
    words = (first.uuid, "Register another root")
    check_refused(second, answer, before, 409, "root_taken", *words)


def test_a_provider_that_has_the_uuid_of_the_agent(native: Native) -> None:
    """The server does not take over a provider that it has not created."""
    machine = Machine(native)
    body = {"name": f"taken-{machine.host}", "uuid": machine.uuid}
    assert native.ask("POST", "/resource_providers", body, **PLACEMENT).status == 200
    assert machine.put().status == 200
    before = machine.stored()
    words = (machine.uuid, "with this provider as root")
    check_refused(machine, machine.register(), before, 409, "root_taken", *words)
    assert machine.register(root=machine.uuid).status == 200


@pytest.mark.parametrize("suffix", ["", "_numa0"])
def test_a_name_that_is_taken(native: Native, suffix: str) -> None:
    """The names of the root and of its parts must be free; afterwards nothing is half-created."""
    machine = Machine(native)
    taken = native.provider(machine.host + suffix)
    assert machine.put().status == 200
    before = machine.stored()
    name = machine.host + suffix
    check_refused(machine, machine.register(), before, 409, "duplicate_provider", name)
    shown = native.ask("GET", f"/resource_providers/{machine.uuid}", **PLACEMENT)
    assert shown.status == 404
    assert native.ask("DELETE", f"/resource_providers/{taken}", **PLACEMENT).status == 204
    assert machine.register().status == 200


def test_a_part_of_another_agent(native: Native) -> None:
    """The UUID of a part follows from the agent, so nobody can register that of another."""
    first, second = Machine(native).offering(), Machine(native)
    assert second.put().status == 200
    before = (first.stored(), second.stored())
    part = {"provider": first.part, "name": "numa0", "classes": {PAGES: {"eligible": 1}}}
    answer = second.register(parts=[part])
    words = (second.part, first.part, "version 5")
    check_refused(second, answer, before[1], 400, "invalid", *words)
    assert first.stored() == before[0]


def test_a_start_of_a_consumer_elsewhere(native: Native) -> None:
    """A consumer that holds something on another machine has no place on this one."""
    first, second = Machine(native).offering(), Machine(native).offering()
    consumer = first.claim(10)
    before = second.stored()
    check_refused(second, second.start(consumer), before, 404, "place_not_found", consumer)
    assert first.start(consumer).body["may_start"]


def test_a_machine_in_use_is_not_decommissioned(native: Native) -> None:
    """It must be expunged first; then allocations must move, or `force` is said."""
    machine = Machine(native).offering()
    machine.claim(10)
    before = machine.stored()
    answer = machine.operate("decommission")
    check_refused(machine, answer, before, 409, "not_expunged", "expunge it before")
    assert machine.operate("expunge").status == 200
    before = machine.stored()
    answer = machine.operate("decommission")
    check_refused(machine, answer, before, 409, "has_allocations", "force")
    for word in ("drain", "resume"):
        answer = machine.operate(word)
        check_refused(machine, answer, before, 409, "policy_final", "expunged")
    assert machine.operate("decommission", force=True).status == 200


def test_enrolling_twice(native: Native) -> None:
    """The first enrolment returns the only token; a second one gets nothing."""
    wanted = {"name": "enroller", "role": "enroller", "scope": {"group": ["rack"]}}
    enroller = native.ask("POST", "/v1/tokens", wanted).body["token"]
    machine = Machine(native)
    first = machine.operate("enroll", enroller, group="rack")
    assert first.status == 201
    machine.token = first.body["token"]
    before = machine.stored()
    again = machine.operate("enroll", enroller, group="rack")
    check_refused(machine, again, before, 409, "agent_exists", "use the token that it got")
    assert machine.register().status == 200
    assert not machine.shown()["offered"]


def test_a_group_in_use(native: Native) -> None:
    """A group with agents stays; one that does not exist is named."""
    machine = Machine(native)
    assert machine.put(group="busy").status == 200
    before = machine.stored()
    answer = native.ask("DELETE", "/v1/groups/busy")
    check_refused(machine, answer, before, 409, "group_in_use", "1 agent", "move them")
    for method, path, body in (
        ("DELETE", "none", None),
        ("GET", "none", None),
        ("POST", "none:confirm", {}),
        ("POST", "none:wait", {"seconds": 1}),
    ):
        answer = native.ask(method, f"/v1/groups/{path}", body)
        check_refused(machine, answer, before, 404, "group_not_found", "'none'")
