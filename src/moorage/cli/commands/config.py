"""`moorage config`: prints the settings and their sources."""

from typing import Any

import click

from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import say, show_json, show_table
from moorage.cli.support.settings import (
    config_option,
    load,
    placement_conf_option,
    settings_options,
)
from moorage.config import settings as config
from moorage.store.addresses import HIDDEN, password_hidden


@click.group("config")
def group() -> None:
    """Show the settings."""


@group.command(epilog=example("moorage config show --origin"))
@config_option
@placement_conf_option
@settings_options(*(name for name in config.FIELDS if name not in config.SECRET_SETTINGS))
@click.option("--origin", is_flag=True, help="Also print where each value comes from.")
@json_option
def show(
    config_file: str | None,
    placement_conf: tuple[str, ...],
    origin: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Print every setting in force; passwords are hidden."""
    loaded = load(options, config_file, placement_conf)
    for note in loaded.notes:
        say(note, err=True)
    values = {name: _shown(name, getattr(loaded.settings, name)) for name in config.FIELDS}
    if as_json:
        show_json(
            {name: {"value": values[name], "origin": loaded.origins[name]} for name in values}
            if origin
            else values
        )
        return
    columns = ["setting", "value", "origin"] if origin else ["setting", "value"]
    rows = [[name, _text(value), loaded.origins[name]] for name, value in values.items()]
    show_table(columns, [row[: len(columns)] for row in rows])


def _shown(name: str, value: Any) -> Any:
    if name in config.SECRET_SETTINGS and value is not None:
        return HIDDEN
    return password_hidden(value) if name == "database" else value


def _text(value: Any) -> str:
    if value is None or value == ():
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
