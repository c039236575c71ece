"""`moorage ironic`: limits on how many nodes Ironic works at once, and reports of its nodes.

`govern.py`, `rollout.py` and `report.py` have one command each; `gate.py` has `moorage gate`. May
import: `support`, `integrations`, `client`, `wire`, `serve` for its logs.
"""

import click

from moorage.cli.commands.ironic import govern, report, rollout


@click.group("ironic")
def group() -> None:
    """Limit the number of nodes that OpenStack Ironic works on at once; report its nodes."""


group.add_command(govern.govern)
group.add_command(report.report)
group.add_command(rollout.rollout)
