"""Settings, and the options for them, which are generated from the settings."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_args, get_origin

import click

from moorage.cli.support.output import USAGE, Failure
from moorage.config import ConfigError
from moorage.config import settings as config

C = TypeVar("C", bound=Callable[..., Any])

config_option = click.option(
    "--config",
    "config_file",
    envvar="MOORAGE_CONFIG",
    type=click.Path(),
    metavar="FILE",
    help="Settings file; by default moorage.toml, if it exists.",
)

placement_conf_option = click.option(
    "--placement-conf",
    "placement_conf",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="OpenStack Placement's placement.conf, or a folder of such files; repeatable. Settings"
    " from elsewhere count more.",
)


def settings_options(*names: str) -> Callable[[C], C]:
    """Add one option per setting to a command."""

    def decorate(command: C) -> C:
        for name in reversed(names):
            command = _option(name)(command)
        return command

    return decorate


def _option(name: str) -> Callable[[C], C]:
    hint = get_args(config.Settings.__annotations__[name])[0]
    dashed = name.replace("_", "-")
    meaning = f"{config.FIELDS[name]} Default: {_default(name)}."
    if hint is bool:
        return click.option(f"--{dashed}/--no-{dashed}", name, default=None, help=meaning)
    kind: Any = click.Choice(get_args(hint)) if get_origin(hint) is Literal else str
    metavar = None if get_origin(hint) is Literal else "VALUE"
    return click.option(f"--{dashed}", name, type=kind, metavar=metavar, help=meaning)


def _default(name: str) -> str:
    default = getattr(config.Settings(), name)
    if default is None or default == ():
        return "none"
    return str(default).lower() if isinstance(default, bool) else str(default)


def load(
    options: dict[str, Any], config_file: str | None, placement_conf: tuple[str, ...] = ()
) -> config.Loaded:
    """Merge all sources of settings. Raises Failure: 2, a setting is invalid."""
    try:
        return config.load(options, file=config_file, placement=placement_conf)
    except ConfigError as error:
        raise Failure(USAGE, str(error)) from None


def address_of(settings: config.Settings) -> str:
    """Return the database's address with its password. Raises Failure: 2, a setting is invalid."""
    try:
        return config.database_address(settings)
    except ConfigError as error:
        raise Failure(USAGE, str(error)) from None
