"""`moorage ironic`: limits on how many nodes Ironic works at once.

`govern.py` and `rollout.py` have one command each; `gate.py` has `moorage gate`. May import:
`support`, `integrations`, `client`, `wire`, `serve` for its logs.
"""

import click

from moorage.cli.commands.ironic import govern, rollout


@click.group("ironic")
def group() -> None:
    """Limit on how many nodes OpenStack Ironic works at once."""


group.add_command(govern.govern)
group.add_command(rollout.rollout)
