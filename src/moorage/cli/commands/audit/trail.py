"""`moorage audit`: prints the audit trail of administrative actions."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import click

from moorage.cli.support import completion
from moorage.cli.support.command import (
    administering,
    administration,
    at_server,
    is_at_server,
    server_now,
)
from moorage.cli.support.durations import SinceType, duration_text
from moorage.cli.support.options import WholeNumber, example, json_option, wide_option
from moorage.cli.support.output import say, show_json
from moorage.cli.support.tables import Column, show_rows
from moorage.cli.support.views.audit_text import change_text, target_cells
from moorage.cli.support.views.cells import age_cell, as_it_came
from moorage.core.ids import is_normal
from moorage.core.limits import PAGE_MAX
from moorage.wire.audit import AuditAsked

COLUMNS = (
    Column("at", "age", right=True),
    Column("who", least=12),
    Column("role", dropped=1),
    Column("action"),
    Column("target", least=16),
    Column("change", least=16, last=True),
)

LIMIT = 50


BELOW = {
    "ironic": "Compare the ledger with Ironic's nodes, where no Nova uses them.",
    "nova": "Compare the ledger with Nova, and print what is wrong.",
}
"""The commands below, with their summaries: the audit log needs less, so they are not imported."""


WORDS = "moorage.audit_below"
"""In a context's `meta`: the words of a command below, if the command line has one."""


class Trail(click.Group):
    """A command that prints the audit log, and has others below it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See click."""
        return [*BELOW]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See click."""
        if cmd_name not in BELOW:
            return None
        from moorage.cli.commands.audit import clouds

        return clouds.nova if cmd_name == "nova" else clouds.ironic

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click: the first word is a command below, or this is the command itself."""
        if args and args[0] in BELOW:
            ctx.meta[WORDS] = args
            return []
        ctx.allow_interspersed_args = True
        return click.Command.parse_args(self, ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """See click."""
        if WORDS not in ctx.meta:
            return click.Command.invoke(self, ctx)
        name, *rest = ctx.meta[WORDS]
        command = self.get_command(ctx, name)
        assert command is not None
        ctx.invoked_subcommand = name
        with command.make_context(name, rest, parent=ctx) as below:
            return command.invoke(below)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See click."""
        with formatter.section("Commands"):
            formatter.write_dl([*BELOW.items()])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """See click."""
        return ["[OPTIONS] [TARGET]"]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """See click; the usage of a command below asks for these, and has no TARGET."""
        params = super().get_params(ctx)
        return params if ctx.command is self else []


@click.group(
    cls=Trail,
    invoke_without_command=True,
    epilog=example(
        "moorage audit --since 1h", "moorage audit install/azure", "moorage audit nova --os-cloud c"
    ),
)
@administering
@click.argument("target", required=False, shell_complete=completion.pools)
@click.option(
    "--limit",
    type=WholeNumber(1, PAGE_MAX),
    help="Number of entries; by default 50, or 1000 with --since.",
)
@click.option(
    "--since",
    type=SinceType(),
    help="Only entries since this time, such as 1h, 23:00 or 2026-11-27T04:31.",
)
@click.option("--who", help="Only entries of this actor, such as alice.")
@click.option("--action", help="Only this action, such as pool.pause, or all of a noun: pool.")
@wide_option
@json_option
def audit(
    target: str | None,
    limit: int | None,
    since: float | None,
    who: str | None,
    action: str | None,
    wide: bool,
    as_json: bool,
) -> None:
    """Print the audit log, newest first.

    With TARGET only the entries about it: a pool, a machine, an agent, a lease or anything else
    that has this name, or an id that begins so.

    The commands below compare the ledger with other services instead.
    """
    most = limit or (LIMIT if since is None else PAGE_MAX)
    asked = AuditAsked(target=target, who=who, action=action, limit=most)
    entries = [*islice(_found(asked, since), most)]
    if not entries and target is not None and (meant := _meant(target)) is not None:
        entries = [*islice(_found(replace(asked, target=meant), since), most)]
    if since is not None and limit is None and len(entries) == most:
        say(
            f"moorage: only the newest {most} entries of the last {duration_text(since)} are shown",
            err=True,
        )
    now = server_now()
    if as_json:
        show_json(entries)
        return
    targets = target_cells({entry["target"]: entry.get("name") for entry in entries})
    rows = [
        [
            as_it_came(age_cell, entry["at"], now),
            entry["who"],
            entry["role"],
            entry["action"],
            targets[entry["target"]],
            change_text(entry["before"], entry["after"]),
        ]
        for entry in entries
    ]
    show_rows(COLUMNS, rows, wide=wide)


def _meant(target: str) -> str | None:
    """Return the id of what a target names, if there are no entries about that word itself.

    None: the word was right, or it names nothing, which is said. Raises Failure: 2, several things.
    """
    if is_normal(target):
        return None
    if not is_at_server():
        say("moorage: without a server, only whole ids and names of pools are found", err=True)
        return None
    # deferred: most calls name no machine
    from moorage.cli.support.ids import anything_id
    from moorage.client.finding import Finder

    with at_server(Finder) as finder:
        found = anything_id(finder, target)
    if found is None:
        say(
            f"moorage: nothing has the name '{target}', or an id that begins so; what is deleted"
            " is found by its whole id",
            err=True,
        )
    return None if found == target else found


def _found(asked: AuditAsked, since: float | None) -> Iterator[dict[str, Any]]:
    """Yield entries, newest first, that are at most this old, in seconds; None: however old.

    A filtered page may be short or empty although others follow.
    """
    backend = administration()
    while True:
        entries, following = backend.audit(asked)
        for one in entries:
            if since is not None and _age(one, server_now()) > since:
                return
            yield one
        if following is None:
            return
        asked = replace(asked, cursor=following)


def _age(entry: dict[str, Any], now: datetime) -> float:
    """Return the age of an entry in seconds."""
    return (now - datetime.fromisoformat(entry["at"])) / timedelta(seconds=1)
