"""`moorage agent`: what machines really have, and whether they are used."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, get_args

import click

from moorage.cli.commands import agent_group
from moorage.cli.commands.run import attach
from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server, server, server_now
from moorage.cli.support.durations import DurationType
from moorage.cli.support.irreversible import Ask, irreversible
from moorage.cli.support.options import example, json_option, label_option, wide_option
from moorage.cli.support.output import USAGE, Failure, say_or_json, show_json, show_table
from moorage.cli.support.tables import NOTHING, Cell, Column, show_rows
from moorage.cli.support.views.cells import age_cell, id_cells, state_cell
from moorage.cli.support.views.pool_text import plain_text
from moorage.client.fleet import Fleet
from moorage.wire.enums import AgentState, Liveness, Policy, Readiness
from moorage.wire.fleet import (
    Agent,
    AgentRootRequest,
    AgentWanted,
    DesiredRequest,
    EnrollRequest,
    PolicyRequest,
)

COLUMNS = (
    Column("id"),
    Column("host", least=12),
    Column("group", dropped=4, least=8),
    Column("policy", dropped=2),
    Column("readiness"),
    Column("liveness"),
    Column("reservoir", dropped=3, least=16),
    Column("reason", least=16, last=True),
    Column("heard", "silent", dropped=1, right=True),
)

CLASSES = (
    Column("part", least=8),
    Column("class", least=12),
    Column("desired", right=True),
    Column("actual", right=True),
    Column("offered", right=True),
    Column("used", dropped=1, right=True),
    Column("reason", least=16, last=True),
)

SILENT = ("lost", "late")
"""The liveness of silent agents, the longest silence first."""

UNREADY = ("failed", "degraded")
"""The readiness of machines that lack something, those first that offer nothing."""

_ID = "5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"
"""The agent of the examples."""

_ROOT = "9f1c3c52-5d0f-4a0e-8a55-3f0d0b9e7c11"
"""The provider of its machine."""


@click.group("agent")
def group() -> None:
    """Report what machines really have; drain and resume them.

    Name an agent by its host name, its id or a prefix of the id of at least 8 characters.
    """


attach(group)
group.add_command(agent_group.group)


def _choice(name: str, values: Any, what: str) -> Callable[[Any], Any]:
    return click.option(f"--{name}", type=click.Choice(get_args(values)), help=what)


_AGENT = click.argument("agent_id", metavar="ID", shell_complete=completion.agents)
_LABELS = label_option("NAME=VALUE; may be repeated.")
_GROUP = click.option(
    "--group",
    "named",
    default="default",
    help="Group of the agent; by default the group named default.",
    shell_complete=completion.agent_groups,
)
_REASON = click.option("--reason", default="", help="Reason, shown in the audit log and to others.")


@group.command("list", epilog=example("moorage agent list --not-offered"))
@administering
@click.option(
    "--group",
    "named",
    help="Only agents of this group.",
    shell_complete=completion.agent_groups,
)
@_choice("policy", Policy, "Only agents with this policy.")
@_choice("state", AgentState, "Only agents in this state; by default active ones.")
@_choice("readiness", Readiness, "Only agents with this readiness.")
@_choice("liveness", Liveness, "Only agents with this liveness.")
@click.option("--silent", is_flag=True, help="Only agents that are late or lost.")
@click.option("--label", help="Only agents with this label: NAME or NAME=VALUE.")
@click.option(
    "--offered/--not-offered",
    default=None,
    help="Only agents whose machines are offered, or are not.",
)
@wide_option
@json_option
def list_(
    named: str | None,
    state: str | None,
    liveness: str | None,
    silent: bool,
    wide: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    """Print agents, those in trouble first, with the actual and the desired amounts of each."""
    if silent and liveness is not None:
        raise Failure(USAGE, "use either --silent (late or lost) or --liveness")
    filters |= {"group": named, "state": state or "active"}
    with at_server(Fleet) as fleet:
        agents = [
            agent
            for one in (SILENT if silent else (liveness,))
            for agent in fleet.agents(liveness=one, **filters)
        ]
        if named is not None and not agents:
            fleet.group(named)  # raises if there is no such group
    if as_json:
        show_json(agents)
    else:
        shown, now = id_cells(agent.id for agent in agents), server_now()
        rows = [[shown[agent.id], *_row(agent, now)] for agent in sorted(agents, key=_calm)]
        show_rows(COLUMNS, rows, wide=wide)


def _calm(agent: Agent) -> tuple[int, int, str]:
    """Return how well an agent is: lost ones have the least, then late ones, then failed ones.

    Those that are equally well are by host name.
    """
    return _place(SILENT, agent.liveness), _place(UNREADY, agent.readiness), agent.name


def _place(troubles: Sequence[str], state: str) -> int:
    return troubles.index(state) if state in troubles else len(troubles)


@group.command(epilog=example(f"moorage agent show {_ID}"))
@administering
@_AGENT
@wide_option
@json_option
def show(agent_id: str, wide: bool, as_json: bool) -> None:
    """Print the agent ID, and why it offers less than it should."""
    with at_server(Fleet) as fleet:
        agent = fleet.agent(ids.agent_id(fleet, agent_id))
    if as_json:
        show_json(agent)
        return
    shown = asdict(agent)
    del shown["parts"]
    shown["unconfirmed"] = ", ".join(agent.unconfirmed)
    show_table(["property", "value"], [[name, plain_text(value)] for name, value in shown.items()])
    rows = [
        [
            part.name or "root",
            name,
            str(one.desired),
            str(one.actual),
            str(one.offered),
            str(one.used),
            one.why or "-",
        ]
        for part in agent.parts
        for name, one in part.classes.items()
    ]
    if rows:
        show_rows(CLASSES, rows, wide=wide)


@group.command(epilog=example(f"moorage agent create {_ID} --group rack-7 --label row=2"))
@administering
@click.argument("agent_id", metavar="ID")
@_GROUP
@_LABELS
@_choice(
    "policy", Policy, "Policy of the agent; by default unchanged, and in_service for a new agent."
)
@click.option("--root", help="Name or UUID of the machine's provider, if it differs from ID.")
@json_option
def create(
    agent_id: str,
    named: str,
    labels: dict[str, str] | None,
    policy: Any,
    root: str | None,
    as_json: bool,
) -> None:
    """Create the agent ID, or replace its group and its labels."""
    with at_server(Fleet) as fleet:
        machine = _provider(root)
        wanted = AgentWanted(group=named, labels=labels or {}, policy=policy, root=machine)
        agent = fleet.agent_put(agent_id, wanted)
    say_or_json(as_json, agent, f"agent {agent.id} is in group {agent.group}, {agent.policy}")


@group.command(epilog=example(f"moorage agent root {_ID} {_ROOT}"))
@administering
@_AGENT
@click.argument("provider", metavar="PROVIDER", shell_complete=completion.providers)
@json_option
def root(agent_id: str, provider: str, as_json: bool) -> None:
    """Give the agent ID the existing PROVIDER as the root of its machine.

    Then the agent may close the whole tree of PROVIDER. A provider with the UUID of the agent needs
    no such permission.
    """
    with at_server(Fleet) as fleet:
        wanted = AgentRootRequest(root=str(_provider(provider)))
        agent = fleet.root(ids.agent_id(fleet, agent_id), wanted)
    say_or_json(as_json, agent, f"agent {agent.id} may have provider {agent.given_root} as root")


@group.command(epilog=example(f"moorage agent enroll {_ID} --group rack-7"))
@administering
@click.argument("agent_id", metavar="ID")
@_GROUP
@_LABELS
@json_option
def enroll(agent_id: str, named: str, labels: dict[str, str] | None, as_json: bool) -> None:
    """Create the agent ID and print its token, which cannot be shown again.

    Nothing is placed on its machine until an operator accepts it: `moorage agent resume`.
    """
    with at_server(Fleet) as fleet:
        made = fleet.enroll(agent_id, EnrollRequest(group=named, labels=labels or {}))
    say_or_json(as_json, made, made.token)


@group.command(
    "set-desired", epilog=example(f"moorage agent set-desired {_ID} CUSTOM_HUGEPAGES_2MB 80%")
)
@administering
@_AGENT
@click.argument("resource_class", metavar="CLASS", shell_complete=completion.classes)
@click.argument("amount")
@click.option(
    "--provider",
    help="Only for this part, by its name or UUID; by default for each part that has the class.",
    shell_complete=completion.providers,
)
@_REASON
@json_option
def set_desired(
    agent_id: str,
    resource_class: str,
    amount: str,
    provider: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Set how much of CLASS each part of the agent ID should have.

    AMOUNT is a number of units, a share of the eligible units such as 80%, or `group` for the
    default of the group.
    """
    units, percent = amount_of(amount)
    with at_server(Fleet) as fleet:
        wanted = DesiredRequest(
            resource_class=resource_class,
            provider=_provider(provider),
            amount=units,
            percent=percent,
            reason=reason,
        )
        agent = fleet.desired(ids.agent_id(fleet, agent_id), wanted)
    say_or_json(as_json, agent, f"agent {agent.id}: {_reservoir(agent)}")


def amount_of(text: str) -> tuple[int | None, float | None]:
    """Return (units, percent) of an amount on the command line. Raises Failure."""
    if text == "group":
        return None, None
    try:
        if text.endswith("%"):
            return None, float(text.removesuffix("%"))
        return int(text), None
    except ValueError:
        raise Failure(USAGE, f"{text!r} is not an amount: write 512, 80% or group") from None


_DONE = {
    "drain": "drained",
    "resume": "in service",
    "expunge": "expunged permanently",
    "decommission": "decommissioned permanently",
}


@group.command(epilog=example(f'moorage agent drain {_ID} --for 2h --reason "new fans"'))
@administering
@_AGENT
@_REASON
@click.option("--for", "lasts", type=DurationType(), help="End the drain after this time.")
@json_option
def drain(agent_id: str, reason: str, lasts: float | None, as_json: bool) -> None:
    """Place nothing new on the machine of the agent ID; its consumers stay."""
    _move(agent_id, "drain", PolicyRequest(reason=reason, lasts=lasts), as_json)


@group.command(epilog=example(f"moorage agent resume {_ID}"))
@administering
@_AGENT
@_REASON
@json_option
def resume(agent_id: str, reason: str, as_json: bool) -> None:
    """Use the machine of the agent ID again, or accept one that has enrolled."""
    _move(agent_id, "resume", PolicyRequest(reason=reason), as_json)


@group.command(epilog=example(f'moorage agent expunge {_ID} --reason "burnt"'))
@administering
@_AGENT
@_REASON
@irreversible("agent expunge")
@json_option
def expunge(agent_id: str, reason: str, sure: Ask, as_json: bool) -> None:
    """Never use the machine of the agent ID again. This is final."""
    _move(agent_id, "expunge", PolicyRequest(reason=reason), as_json, sure)


@group.command(epilog=example(f"moorage agent decommission {_ID}"))
@administering
@_AGENT
@_REASON
@click.option(
    "--force", is_flag=True, help="Decommission even if the machine still has allocations."
)
@irreversible("agent decommission")
@json_option
def decommission(agent_id: str, reason: str, force: bool, sure: Ask, as_json: bool) -> None:
    """End the agent ID of an expunged machine; its UUID is used up."""
    _move(agent_id, "decommission", PolicyRequest(reason=reason, force=force), as_json, sure)


def _move(
    agent_id: str, action: str, wanted: PolicyRequest, as_json: bool, sure: Ask | None = None
) -> None:
    """Change the policy of an agent; `sure` asks first, and then only its whole id or name does."""
    with at_server(Fleet) as fleet:
        whole = ids.agent_id(fleet, agent_id, whole=sure is not None)
        if sure is not None:
            sure(whole if whole == agent_id else f"{agent_id} ({whole})")
        agent = fleet.policy(whole, action, wanted)
    say_or_json(as_json, agent, f"agent {agent.id} is {_DONE[action]}")


def _provider(text: str | None) -> str | None:
    """Return the UUID of a provider that is named; None: none is."""
    from moorage.client.ledger import Ledger  # deferred: for few commands

    return None if text is None else ids.provider_id(Ledger(server()), text)


def _row(agent: Agent, now: datetime) -> list[Cell | str]:
    heard = age_cell(agent.heard_at, now)
    return [
        "-" if agent.facts is None else agent.facts.hostname,
        agent.group,
        state_cell(agent.policy),
        state_cell(agent.readiness),
        state_cell(agent.liveness),
        _reservoir_cell(agent),
        _remark(agent),
        heard if agent.liveness in SILENT else heard._replace(short=NOTHING),
    ]


def _reservoir(agent: Agent) -> str:
    """Return what is there of what is desired, by class."""
    return ", ".join(f"{name} {amounts}" for name, amounts in _amounts(agent)) or NOTHING


def _reservoir_cell(agent: Agent) -> Cell:
    """Return the same as a cell: on a terminal the amounts come first, as the end may be cut."""
    short = ", ".join(f"{amounts} {name}" for name, amounts in _amounts(agent))
    return Cell(short or NOTHING, _reservoir(agent))


def _amounts(agent: Agent) -> list[tuple[str, str]]:
    sums: dict[str, list[int]] = {}
    for part in agent.parts:
        for name, one in part.classes.items():
            held = sums.setdefault(name, [0, 0])
            held[0] += one.actual
            held[1] += one.desired
    return [(name, f"{there}/{wanted}") for name, (there, wanted) in sorted(sums.items())]


def _remark(agent: Agent) -> str:
    if agent.failure is not None:
        return f"{agent.failure.code}: {agent.failure.message}"
    if agent.over:
        return "more is used than offered"
    return agent.policy_reason or "-"
