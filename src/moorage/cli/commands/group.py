"""`moorage group` and `moorage report`: groups of reporters, their members, and their reports."""

from functools import partial

import click

from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server, server
from moorage.cli.support.durations import duration_text
from moorage.cli.support.irreversible import Ask, irreversible
from moorage.cli.support.options import example, json_option, wide_option
from moorage.cli.support.output import USAGE, Failure, say, say_or_json, show_json
from moorage.cli.support.tables import BAD, GOOD, Cell, Column, show_rows
from moorage.client.reporting import Reporting
from moorage.core.ages import age_text
from moorage.core.counting import are, counted
from moorage.core.limits import PINS_MAX
from moorage.wire.reporting import PinsWanted, Reporter, ReporterGroup

COLUMNS = (
    Column("member", least=14),
    Column("live"),
    Column("silent", right=True),
    Column("ttl", dropped=2, right=True),
    Column("pinned", dropped=1, right=True),
    Column("last pass", right=True),
    Column("nodes", right=True),
    Column("refused", least=12, last=True),
)

NAME = click.argument("name", shell_complete=completion.reporter_groups)


@click.group()
def group() -> None:
    """Show and delete groups of reporters, which share Ironic's nodes; pin nodes to members."""


@group.command("list", epilog=example("moorage group list"))
@administering
@json_option
def list_(as_json: bool) -> None:
    """Print the names of all groups of reporters."""
    with at_server(Reporting) as reporting:
        names = list(reporting.groups())
    if as_json:
        show_json(names)
    else:
        for name in names:
            say(name)


@group.command(epilog=example("moorage group show ironic"))
@administering
@NAME
@wide_option
@json_option
def show(name: str, wide: bool, as_json: bool) -> None:
    """Print the members of the group NAME, live or not."""
    with at_server(Reporting) as reporting:
        found = ids.reporter_group_of(reporting, name, reporting.group, reads=True)
    if as_json:
        show_json(found)
        return
    show_members(found, wide=wide)
    if found.observed or found.observer_error:
        say(f"observed: {', '.join(found.observed) or 'nobody'}")


@group.command(epilog=example("moorage group pins ironic"))
@administering
@NAME
@json_option
def pins(name: str, as_json: bool) -> None:
    """Print pinned nodes and their members."""
    with at_server(Reporting) as reporting:
        found = ids.reporter_group_of(reporting, name, reporting.pins, reads=True)
    if as_json:
        show_json(found)
    else:
        rows = [[node, member] for node, member in found.items()]
        show_rows([Column("node"), Column("member")], rows)


@group.command(epilog=example("moorage group nodes ironic"))
@administering
@NAME
@json_option
def nodes(name: str, as_json: bool) -> None:
    """Print all providers that the group NAME owns, and whether each is a ghost."""
    with at_server(Reporting) as reporting:
        found = ids.reporter_group_of(
            reporting, name, lambda one: list(reporting.nodes(one)), reads=True
        )
    if as_json:
        show_json(found)
    else:
        rows = [[one.uuid, "yes" if one.ghost else "no"] for one in found]
        show_rows([Column("node"), Column("ghost")], rows)


@group.command(epilog=example("moorage group ghosts ironic"))
@administering
@NAME
@json_option
def ghosts(name: str, as_json: bool) -> None:
    """Print the providers of the group NAME that are gone but still have allocations."""
    with at_server(Reporting) as reporting:
        found = ids.reporter_group_of(
            reporting, name, lambda one: list(reporting.ghosts(one)), reads=True
        )
    if as_json:
        show_json(found)
    else:
        for uuid in found:
            say(uuid)


@group.command(epilog=example("moorage group pin ironic --to reporter-2 $NODE"))
@administering
@NAME
@click.argument("nodes", nargs=-1, required=True)
@click.option("--to", "member", help="The member that will own the nodes, live or not.")
@click.option("--remove", is_flag=True, help="Remove the pins of the nodes.")
@json_option
def pin(name: str, nodes: tuple[str, ...], member: str | None, remove: bool, as_json: bool) -> None:
    """Pin NODES of the group NAME to a member, or remove their pins.

    A node is named by its UUID, which need not be that of a provider yet, or as a provider is.
    """
    if (member is None) != remove:
        raise Failure(USAGE, "give either --to MEMBER or --remove")
    from moorage.client.ledger import Ledger  # deferred: for this command only

    with at_server(Reporting) as reporting:
        ledger = Ledger(server())
        for first in range(0, len(nodes), PINS_MAX):
            part = [ids.provider_id(ledger, one) for one in nodes[first : first + PINS_MAX]]
            wanted = PinsWanted(nodes=part, member=member)
            found = ids.reporter_group_of(reporting, name, partial(_pin, reporting, wanted))
    say_or_json(as_json, found, *_pinned(found, len(nodes), member))


def _pin(reporting: Reporting, wanted: PinsWanted, name: str) -> ReporterGroup:
    return reporting.pin(name, wanted)


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
@irreversible("group delete")
@json_option
def delete(name: str, sure: Ask, as_json: bool) -> None:
    """Delete the group NAME, which must have no live members; its providers stay."""
    sure(name)
    with at_server(Reporting) as reporting:
        ids.reporter_group_of(reporting, name, reporting.group_delete)
    say_or_json(as_json, {"name": name, "deleted": True}, f"deleted {name}")


def show_members(found: ReporterGroup, *, wide: bool) -> None:
    """Print the members of a group as a table."""
    show_rows(COLUMNS, [_row(member) for member in found.members], wide=wide)


def _row(member: Reporter) -> list[Cell | str]:
    last = member.last_pass
    refused = ", ".join(f"{n} {code}" for code, n in (last.refused if last else {}).items())
    return [
        member.name,
        Cell("yes", "yes", GOOD) if member.live else Cell("no", "no", BAD),
        _seconds(member.silent),
        duration_text(member.ttl),
        str(member.pinned),
        "-" if last is None else _seconds(last.age, " ago"),
        "-" if last is None else str(last.nodes),
        refused or "-",
    ]


def _seconds(seconds: float, after: str = "") -> Cell:
    """Return the cell of a duration in the past: on a terminal in at most two units."""
    return Cell(f"{age_text(seconds)}{after}", f"{duration_text(round(seconds))}{after}")


@click.group()
def report() -> None:
    """Show the reporters of nodes and their problems (see also `moorage group`)."""


@report.command(epilog=example("moorage report status ironic"))
@administering
@NAME
@wide_option
@json_option
def status(name: str, wide: bool, as_json: bool) -> None:
    """Print the members of a group of reporters, and their problems.

    NAME is the group. Problems are refused nodes, nodes that are pinned to a member that is not
    live, ghosts, and errors of the observer of members.
    """
    with at_server(Reporting) as reporting:
        found = ids.reporter_group_of(reporting, name, reporting.group, reads=True)
        ghosts = list(reporting.ghosts(found.name))
    if as_json:
        show_json({"group": found, "ghosts": ghosts})
        return
    show_members(found, wide=wide)
    if found.seen_at is not None:
        say(f"observed: {', '.join(found.observed) or 'nobody'}")
    if not any(member.live for member in found.members) and (found.members or not found.seen_at):
        say("nobody reports: no member is live")
    if pinned := found.pinned_elsewhere:
        say(f"{counted(pinned, 'node')} {are(pinned)} pinned to members that are not live")
    if found.observer_error:
        say(f"the observer failed: {found.observer_error}")
    for uuid in ghosts:
        say(f"ghost {uuid}: its node is gone, but it still has allocations")
