"""`moorage agent group`: defaults of agents, and networks that are suspect."""

import click

from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server
from moorage.cli.support.durations import DurationType
from moorage.cli.support.irreversible import Ask, irreversible
from moorage.cli.support.options import example, json_option, wide_option
from moorage.cli.support.output import USAGE, Failure, say_or_json, show_json
from moorage.cli.support.tables import Cell, Column, show_rows
from moorage.cli.support.views.cells import state_cell
from moorage.client.fleet import Fleet
from moorage.wire.fleet import AgentGroup, GroupDesired, GroupWaitRequest, GroupWanted

COLUMNS = (
    Column("group"),
    Column("agents", right=True),
    Column("late", right=True),
    Column("lost", right=True),
    Column("network"),
    Column("desired", dropped=1, least=16, last=True),
)

_NAME = click.argument("name", shell_complete=completion.agent_groups)


@click.group("group")
def group() -> None:
    """Set defaults of groups of agents; decide about silent agents."""


@group.command("list", epilog=example("moorage agent group list"))
@administering
@wide_option
@json_option
def list_(wide: bool, as_json: bool) -> None:
    """Print all groups, with how many of their agents in service are silent."""
    with at_server(Fleet) as fleet:
        groups = list(fleet.groups())
    if as_json:
        show_json(groups)
    else:
        show_rows(COLUMNS, [_row(one) for one in groups], wide=wide)


@group.command(epilog=example("moorage agent group show rack-7"))
@administering
@_NAME
@json_option
def show(name: str, as_json: bool) -> None:
    """Print the group NAME."""
    with at_server(Fleet) as fleet:
        _show_one(ids.agent_group_of(fleet, name, fleet.group, reads=True), as_json)


@group.command(
    "set", epilog=example("moorage agent group set rack-7 --desired CUSTOM_HUGEPAGES_2MB=80%")
)
@administering
@_NAME
@click.option(
    "--desired",
    "goals",
    multiple=True,
    help="CLASS=AMOUNT or CLASS=SHARE% for each part; may be repeated.",
)
@json_option
def set_(name: str, goals: tuple[str, ...], as_json: bool) -> None:
    """Create the group NAME, or replace all its defaults; its agents follow."""
    wanted = GroupWanted(desired=dict(map(_goal, goals)))
    with at_server(Fleet) as fleet:
        _show_one(fleet.group_put(name, wanted), as_json)


@group.command(epilog=example("moorage agent group delete rack-7"))
@administering
@_NAME
@irreversible("agent group delete")
@json_option
def delete(name: str, sure: Ask, as_json: bool) -> None:
    """Delete the group NAME, which must have no active agents."""
    sure(name)
    with at_server(Fleet) as fleet:
        ids.agent_group_of(fleet, name, fleet.group_delete)
    say_or_json(as_json, {"name": name, "deleted": True}, f"deleted {name}")


@group.command(epilog=example("moorage agent group confirm rack-7"))
@administering
@_NAME
@json_option
def confirm(name: str, as_json: bool) -> None:
    """Declare the silent agents of the suspect group NAME lost."""
    with at_server(Fleet) as fleet:
        _show_one(ids.agent_group_of(fleet, name, fleet.group_confirm), as_json)


@group.command(epilog=example("moorage agent group wait rack-7 --for 1h"))
@administering
@_NAME
@click.option(
    "--for",
    "lasts",
    type=DurationType(),
    required=True,
    help="How long no agent of the group is declared lost.",
)
@json_option
def wait(name: str, lasts: float, as_json: bool) -> None:
    """Declare no agent of the group NAME lost for some time, whatever happens."""
    with at_server(Fleet) as fleet:
        wanted = GroupWaitRequest(seconds=lasts)
        found = ids.agent_group_of(fleet, name, lambda one: fleet.group_wait(one, wanted))
        _show_one(found, as_json)


def _goal(text: str) -> tuple[str, GroupDesired]:
    name, equals, amount = text.partition("=")
    try:
        if not (name and equals):
            raise ValueError
        if amount.endswith("%"):
            return name, GroupDesired(percent=float(amount.removesuffix("%")))
        return name, GroupDesired(amount=int(amount))
    except ValueError:
        message = f"{text!r} is not a default: write CLASS=512 or CLASS=80%"
        raise Failure(USAGE, message) from None


def _show_one(one: AgentGroup, as_json: bool) -> None:
    if as_json:
        show_json(one)
    else:
        show_rows(COLUMNS, [_row(one)], wide=True)


def _row(one: AgentGroup) -> list[Cell | str]:
    goals = [
        f"{name} {goal.amount if goal.percent is None else f'{goal.percent:g}%'}"
        for name, goal in one.desired.items()
    ]
    network = "suspect" if one.suspect_network else "-"
    return [
        one.name,
        str(one.members),
        str(one.late),
        str(one.lost),
        state_cell(network),
        ", ".join(goals) or "-",
    ]
