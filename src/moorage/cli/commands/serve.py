"""`moorage serve`: runs the server."""

import gc
from typing import Any

import click

from moorage.cli.support.options import example
from moorage.cli.support.output import USAGE, Failure
from moorage.cli.support.settings import (
    config_option,
    load,
    placement_conf_option,
    settings_options,
)
from moorage.config import ConfigError
from moorage.config import settings as config

_OPTIONS = tuple(name for name in config.FIELDS if name not in config.SECRET_SETTINGS)
"""All settings but secrets: every user of the machine could read them on the command line."""


@click.command(
    epilog=example(
        "moorage serve --listen 127.0.0.1:8778 --database sqlite:////var/lib/moorage/m.sqlite"
    )
)
@config_option
@placement_conf_option
@settings_options(*_OPTIONS)
def serve(config_file: str | None, placement_conf: tuple[str, ...], **options: Any) -> None:
    """Serve the ledger until a signal stops it.

    Every option is also a setting in moorage.toml and an environment variable MOORAGE_NAME.
    """
    loaded = load(options, config_file, placement_conf)
    gc.disable()  # a tenth of a second of collections, which find no garbage among modules
    try:
        from moorage.serve.lifecycle import StartError, run  # deferred: it loads everything
    finally:
        gc.enable()
    try:
        code = run(loaded)
    except (StartError, ConfigError) as error:
        raise Failure(USAGE, str(error)) from None
    click.get_current_context().exit(code)
