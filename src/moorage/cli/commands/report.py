"""`moorage report`: what is wrong with the reports of a group."""

import click
import msgspec

from moorage.cli.commands.group import NAME, show_members
from moorage.cli.support.command import administering, reporting_at_server
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import say, show_json


@click.group()
def report() -> None:
    """Show how the reports of a group of reporters are going."""


@report.command(epilog=example("moorage report status ironic"))
@administering
@NAME
@json_option
def status(name: str, as_json: bool) -> None:
    """Print who reports for the group NAME, nodes that nobody reports, and ghosts."""
    with reporting_at_server() as reporting:
        found = reporting.group(name)
        ghosts = list(reporting.ghosts(name))
    if as_json:
        show_json({"group": msgspec.to_builtins(found), "ghosts": ghosts})
        return
    show_members(found)
    if not any(member.live for member in found.members):
        say("nobody reports: no member is live")
    if found.pinned_elsewhere:
        say(f"{found.pinned_elsewhere} nodes are pinned to members that are not live")
    if found.observer_error:
        say(f"the observer reports: {found.observer_error}")
    for uuid in ghosts:
        say(f"ghost {uuid}: it is gone, but still allocated")
