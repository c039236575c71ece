"""`moorage group`: groups of reporters, who is live in them, and who owns which node."""

import click
import msgspec

from moorage.cli.support import completion
from moorage.cli.support.command import administering, reporting_at_server
from moorage.cli.support.durations import duration_text
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import USAGE, Failure, say, show_json, show_table
from moorage.core.counting import counted
from moorage.core.limits import PINS_MAX
from moorage.wire.reporting import PinsWanted, Reporter, ReporterGroup

COLUMNS = ["member", "live", "silent", "ttl", "pinned", "last pass", "nodes", "refused"]

NAME = click.argument("name", shell_complete=completion.reporter_groups)


@click.group()
def group() -> None:
    """Show and delete groups of reporters, which share Ironic's nodes; pin nodes to members."""


@group.command("list", epilog=example("moorage group list"))
@administering
@json_option
def list_(as_json: bool) -> None:
    """Print the names of all groups of reporters."""
    with reporting_at_server() as reporting:
        names = list(reporting.groups())
    if as_json:
        show_json(names)
    else:
        for name in names:
            say(name)


@group.command(epilog=example("moorage group show ironic"))
@administering
@NAME
@json_option
def show(name: str, as_json: bool) -> None:
    """Print the members of the group NAME, live or not."""
    with reporting_at_server() as reporting:
        found = reporting.group(name)
    if as_json:
        show_json(msgspec.to_builtins(found))
        return
    show_members(found)
    if found.observed or found.observer_error:
        say(f"observed: {', '.join(found.observed) or 'nobody'}")


@group.command(epilog=example("moorage group pins ironic"))
@administering
@NAME
@json_option
def pins(name: str, as_json: bool) -> None:
    """Print pinned nodes and their members."""
    with reporting_at_server() as reporting:
        found = reporting.pins(name)
    if as_json:
        show_json(found)
    else:
        show_table(["node", "member"], [[node, member] for node, member in found.items()])


@group.command(epilog=example("moorage group nodes ironic"))
@administering
@NAME
@json_option
def nodes(name: str, as_json: bool) -> None:
    """Print all providers that the reports of the group NAME own, and whether each is a ghost."""
    with reporting_at_server() as reporting:
        found = list(reporting.nodes(name))
    if as_json:
        show_json(msgspec.to_builtins(found))
    else:
        show_table(["node", "ghost"], [[one.uuid, "yes" if one.ghost else "no"] for one in found])


@group.command(epilog=example("moorage group ghosts ironic"))
@administering
@NAME
@json_option
def ghosts(name: str, as_json: bool) -> None:
    """Print the providers that are gone by the reports of the group NAME, but still allocated."""
    with reporting_at_server() as reporting:
        found = list(reporting.ghosts(name))
    if as_json:
        show_json(found)
    else:
        for uuid in found:
            say(uuid)


@group.command(epilog=example("moorage group pin ironic --to reporter-2 $NODE"))
@administering
@NAME
@click.argument("nodes", nargs=-1, required=True)
@click.option("--to", "member", help="The member that shall own the nodes, live or not.")
@click.option("--remove", is_flag=True, help="Remove the pins of the nodes.")
@json_option
def pin(name: str, nodes: tuple[str, ...], member: str | None, remove: bool, as_json: bool) -> None:
    """Pin NODES of the group NAME to a member, or remove their pins."""
    if (member is None) != remove:
        raise Failure(USAGE, "give either --to MEMBER or --remove")
    with reporting_at_server() as reporting:
        for first in range(0, len(nodes), PINS_MAX):
            part = [*nodes[first : first + PINS_MAX]]
            found = reporting.pin(name, PinsWanted(nodes=part, member=member))
    if as_json:
        show_json(msgspec.to_builtins(found))
    else:
        say(*_pinned(found, len(nodes), member))


def _pinned(found: ReporterGroup, count: int, member: str | None) -> list[str]:
    if member is None:
        return [f"{counted(count, 'node')} no longer pinned"]
    done = f"{counted(count, 'node')} pinned to {member}"
    if any(one.live and one.name == member for one in found.members):
        return [done]
    return [
        f"{done}, which is not live: nobody reports {'it' if count == 1 else 'them'} until it joins"
    ]


@group.command(epilog=example("moorage group delete ironic"))
@administering
@NAME
@json_option
def delete(name: str, as_json: bool) -> None:
    """Delete the group NAME, which must have no live members; its providers stay."""
    with reporting_at_server() as reporting:
        reporting.group_delete(name)
    if as_json:
        show_json({"name": name, "deleted": True})
    else:
        say(f"deleted {name}")


def show_members(found: ReporterGroup) -> None:
    """Print the members of a group as a table."""
    show_table(COLUMNS, [_row(member) for member in found.members])


def _row(member: Reporter) -> list[str]:
    last = member.last_pass
    refused = ", ".join(f"{n} {code}" for code, n in (last.refused if last else {}).items())
    return [
        member.name,
        "yes" if member.live else "no",
        duration_text(round(member.silent)),
        duration_text(member.ttl),
        str(member.pinned),
        "-" if last is None else f"{duration_text(round(last.age))} ago",
        "-" if last is None else str(last.nodes),
        refused or "-",
    ]
