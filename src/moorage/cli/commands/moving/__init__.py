"""`moorage import`, `moorage verify` and `moorage export`: moves from other services, and back.

`import_placement.py`, `verify_placement.py`, `export_placement.py`, `import_boskos.py` and
`export_boskos.py` have one command each. May import: `support`, `integrations`, `client`, `wire`.
"""

import click

from moorage.cli.commands.moving.export_boskos import boskos as export_boskos
from moorage.cli.commands.moving.export_placement import placement as export_placement
from moorage.cli.commands.moving.import_boskos import boskos as import_boskos
from moorage.cli.commands.moving.import_placement import placement as import_placement
from moorage.cli.commands.moving.verify_placement import placement as verify_placement


@click.group("import")
def imports() -> None:
    """Take over what another service keeps."""


@click.group("verify")
def verifies() -> None:
    """Compare the ledger with OpenStack Placement."""


@click.group("export")
def exports() -> None:
    """Write what another service can take over."""


imports.add_command(import_boskos)
imports.add_command(import_placement)
verifies.add_command(verify_placement)
exports.add_command(export_boskos)
exports.add_command(export_placement)
