"""`moorage import`, `moorage verify` and `moorage export`: move ledgers, and compare them.

`import_placement.py`, `verify_placement.py` and `export_placement.py` have one command each. May
import: `support`, `integrations`, `client`, `wire`.
"""

import click

from moorage.cli.commands.moving.export_placement import placement as export_placement
from moorage.cli.commands.moving.import_placement import placement as import_placement
from moorage.cli.commands.moving.verify_placement import placement as verify_placement


@click.group("import")
def imports() -> None:
    """Import the ledger of OpenStack Placement."""


@click.group("verify")
def verifies() -> None:
    """Compare the ledger with OpenStack Placement."""


@click.group("export")
def exports() -> None:
    """Export the ledger to OpenStack Placement."""


imports.add_command(import_placement)
verifies.add_command(verify_placement)
exports.add_command(export_placement)
