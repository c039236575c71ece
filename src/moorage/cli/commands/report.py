"""`moorage report`: what is wrong with the reports of a group."""

import click
import msgspec

from moorage.cli.commands.group import NAME, show_members
from moorage.cli.support.command import administering, reporting_at_server
from moorage.cli.support.options import example, json_option, wide_option
from moorage.cli.support.output import say, show_json
from moorage.core.counting import are, counted


@click.group()
def report() -> None:
    """Show who reports nodes to the ledger, and what is wrong (see also `moorage group`)."""


@report.command(epilog=example("moorage report status ironic"))
@administering
@NAME
@wide_option
@json_option
def status(name: str, wide: bool, as_json: bool) -> None:
    """Print who reports, and what is wrong.

    NAME is the group of reporters. What is wrong: refused nodes, nodes that are pinned to a member
    that is not live, ghosts, errors of who observes members.
    """
    with reporting_at_server() as reporting:
        found = reporting.group(name)
        ghosts = list(reporting.ghosts(name))
    if as_json:
        show_json({"group": msgspec.to_builtins(found), "ghosts": ghosts})
        return
    show_members(found, wide=wide)
    if found.seen_at is not None:
        say(f"observed: {', '.join(found.observed) or 'nobody'}")
    if not any(member.live for member in found.members) and (found.members or not found.seen_at):
        say("nobody reports: no member is live")
    if pinned := found.pinned_elsewhere:
        say(f"{counted(pinned, 'node')} {are(pinned)} pinned to members that are not live")
    if found.observer_error:
        say(f"the observer reports: {found.observer_error}")
    for uuid in ghosts:
        say(f"ghost {uuid}: it is gone, but still allocated")
