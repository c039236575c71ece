"""`moorage import` and `moorage export`: moves from other services, and back.

`import_boskos.py` and `export_boskos.py` have one command each. May import: `support`,
`integrations`, `client`, `wire`.
"""

import click

from moorage.cli.commands.moving.export_boskos import boskos as export_boskos
from moorage.cli.commands.moving.import_boskos import boskos as import_boskos


@click.group("import")
def imports() -> None:
    """Take over what another service keeps."""


@click.group("export")
def exports() -> None:
    """Write what another service can take over."""


imports.add_command(import_boskos)
exports.add_command(export_boskos)
