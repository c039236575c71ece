"""`moorage metal3`: limits on how many BareMetalHosts start at once.

`webhook.py` has one command. May import: `support`, `integrations`, `client`, `wire`.
"""

import click

from moorage.cli.commands.metal3 import webhook


@click.group("metal3")
def group() -> None:
    """Limit how many hosts metal3 starts at once."""


group.add_command(webhook.webhook)
