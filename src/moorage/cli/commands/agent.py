"""`moorage agent`: what a machine really has."""

import click

from moorage.cli.commands.run import attach


@click.group("agent")
def group() -> None:
    """Report what this machine really has, and wait for it."""


attach(group)
