"""`moorage serve`."""

from typing import Any

import click

from moorage import config
from moorage.cli.support.options import config_option, load, settings_options
from moorage.cli.support.output import USAGE, Failure
from moorage.config.errors import ConfigError

_OPTIONS = tuple(name for name in config.FIELDS if name not in config.SECRET_SETTINGS)
"""A secret on the command line could be read by every user of the machine."""


@click.command()
@config_option
@settings_options(*_OPTIONS)
def serve(config_file: str | None, **options: Any) -> None:
    """Serve the ledger until a signal ends it.

    Every option is also a setting of moorage.toml and an environment variable MOORAGE_NAME.
    """
    settings = load(options, config_file).settings
    from moorage.serve.lifecycle import StartError, run  # only now: it loads everything

    try:
        code = run(settings)
    except (StartError, ConfigError) as error:
        raise Failure(USAGE, str(error)) from None
    click.get_current_context().exit(code)
