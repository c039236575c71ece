"""`moorage import`: moves other ledgers in.

`import_placement.py` has one command. May import: `support`, `integrations`, `client`, `wire`.
"""

import click

from moorage.cli.commands.moving.import_placement import placement as import_placement


@click.group("import")
def imports() -> None:
    """Import the ledger of OpenStack Placement."""


imports.add_command(import_placement)
