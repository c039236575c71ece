"""`moorage metal3`: limits on how many BareMetalHosts start at once.

`govern.py`, `webhook.py`, `install.py`, `wait.py` and `uninstall.py` have one command each,
`hold.py` two. May import: `support`, `integrations`, `client`, `wire`.
"""

import click

from moorage.cli.commands.metal3 import govern, hold, install, uninstall, wait, webhook


@click.group("metal3")
def group() -> None:
    """Limit how many hosts metal3 starts at once."""


group.add_command(govern.govern)
group.add_command(hold.hold)
group.add_command(hold.resume)
group.add_command(install.install)
group.add_command(uninstall.uninstall)
group.add_command(wait.wait)
group.add_command(webhook.webhook)
