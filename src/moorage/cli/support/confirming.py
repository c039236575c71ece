"""Asks before what cannot be undone."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from moorage.cli.support.output import FAILED, USAGE, Failure

C = TypeVar("C", bound=Callable[..., Any])


def yes_option(command: C) -> C:
    """Add the option `--yes` to a command."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(command)


def confirm(what: str, yes: bool) -> None:
    """Return if the user agrees to what is about to be done; without a terminal nobody is asked.

    Raises Failure: 2, there is nobody to ask; 1, the user does not agree.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Failure(USAGE, f"{what}: this cannot be undone; say --yes")
    if not click.confirm(f"{what}: this cannot be undone. Continue?", err=True):
        raise Failure(FAILED, "nothing was done")
