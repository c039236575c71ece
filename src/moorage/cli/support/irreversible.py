"""Commands that cannot be undone: they ask on a terminal, and take no beginning of an id.

Elsewhere nobody can be asked. What a script names by its whole id or name is meant, so most of them
go on. Those that cost a machine, or its UUID, or its place in the ledger, want `--yes`.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

import click

from moorage.cli.support.output import FAILED, USAGE, Failure
from moorage.cli.support.terminal import can_ask

IRREVERSIBLE: Final = {
    "agent decommission": "Decommission agent {} permanently? Its UUID can never be used again",
    "agent expunge": "Never use the machine of agent {} again",
    "agent group delete": "Delete the group {}",
    "booking delete": "Cancel the booking {}? Others can then have its units",
    "group delete": "Delete the group {}, with its pins and what it has reported",
    "lease revoke": "End {}",
    "pool delete": "Delete the pool {}, with its settings and its past",
    "pool template delete": "Delete the template {}; its pools stay until they are idle",
    "pool slot remove": "Remove the slot {}",
    "provider delete": "Delete the provider {}, with its inventories and traits",
    "token revoke": "Revoke the token {}? Programs that use it stop",
}
"""What each asks, by its name."""

FINAL: Final = frozenset({"agent decommission", "agent expunge", "provider delete"})
"""Those that want `--yes` where nobody can be asked."""

Ask = Callable[[str | Callable[[], str]], None]
"""Asks about one thing, by its name for people, or by what returns this name: it is called only if
somebody is asked. Raises Failure: it is not to be done."""


def irreversible(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add `--yes` to a command of the table, and the argument `sure`, which it must call first."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def wrapped(*args: Any, yes: bool, **words: Any) -> None:
            command(*args, sure=functools.partial(_ask, name, yes, words["as_json"]), **words)

        return click.option("--yes", is_flag=True, help="Do not ask for confirmation.")(wrapped)

    return decorate


def _ask(name: str, yes: bool, as_json: bool, what: str | Callable[[], str]) -> None:
    if yes:
        return
    if can_ask(as_json=as_json):
        question = IRREVERSIBLE[name].format(what() if callable(what) else what)
        if not click.confirm(question if "?" in question else f"{question}?"):
            raise Failure(FAILED, "nothing was changed")
    elif name in FINAL:
        raise Failure(
            USAGE,
            f"`moorage {name}` cannot be undone, and cannot ask for confirmation without a"
            " terminal or with --json: add --yes",
        )
