"""`moorage ironic`: limits on which nodes OpenStack Ironic works at once."""

import click

from moorage.cli.commands import ironic_govern, ironic_rollout


@click.group("ironic")
def group() -> None:
    """Limit on how many nodes OpenStack Ironic works at once."""


group.add_command(ironic_govern.govern)
group.add_command(ironic_rollout.rollout)
