"""Options that commands share; those for settings are generated from the settings."""

import math
from collections.abc import Callable
from socket import socket
from typing import Any, Literal, TypeVar, get_args, get_origin

import click

from moorage import config
from moorage.cli.support.output import USAGE, Failure
from moorage.config.errors import ConfigError

C = TypeVar("C", bound=Callable[..., Any])

config_option = click.option(
    "--config",
    "config_file",
    envvar="MOORAGE_CONFIG",
    type=click.Path(),
    metavar="FILE",
    help="Settings file; by default moorage.toml, if it exists.",
)
metrics_option = click.option(
    "--metrics-listen",
    metavar="HOST:PORT",
    help="Serve metrics for Prometheus, and probes, on this address; not served by default.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
wide_option = click.option(
    "--wide", is_flag=True, help="On a terminal, print all columns and complete texts."
)


class WholeNumber(click.IntRange):
    """A whole number in a range, with errors in plain words."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number. Raises click.BadParameter."""
        number = click.INT.convert(value, param, ctx)
        if (self.min is not None and number < self.min) or (
            self.max is not None and number > self.max
        ):
            bounds = f"at least {self.min}" if self.max is None else f"{self.min} to {self.max}"
            self.fail(f"{number} is not {bounds}", param, ctx)
        return int(number)


class SecondsRange(click.FloatRange):
    """A number of seconds in a range; `nan` is in none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number. Raises click.BadParameter."""
        found = float(super().convert(value, param, ctx))
        if math.isnan(found):
            self.fail(f"{value!r} is not a valid number.", param, ctx)
        return found


def example(*lines: str) -> str:
    """Return the epilog of a command's help that shows these command lines as they are."""
    title = "Example:" if len(lines) == 1 else "Examples:"
    return "\n".join(["\b", title, *(f"  {line}" for line in lines)])


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


def load(options: dict[str, Any], config_file: str | None) -> config.Loaded:
    """Merge all sources of settings. Raises Failure: 2, a setting is invalid."""
    try:
        return config.load(options, file=config_file)
    except ConfigError as error:
        raise Failure(USAGE, str(error)) from None


def address_of(settings: config.Settings) -> str:
    """Return the database's address with its password. Raises Failure: 2, a setting is invalid."""
    try:
        return config.database_address(settings)
    except ConfigError as error:
        raise Failure(USAGE, str(error)) from None


def listening(address: str | None) -> list[socket]:
    """Return sockets for metrics and probes; empty: there are none. Raises Failure."""
    from moorage.integrations.sockets import ListenError, bound

    try:
        return [] if address is None else bound(address)
    except ListenError as error:
        raise Failure(USAGE, str(error)) from None


def label_option(meaning: str) -> Callable[[C], C]:
    """Return the option `--label`, whose values NAME=VALUE become a dict; None if not given."""
    return click.option("--label", "labels", multiple=True, callback=_labels, help=meaning)


def _labels(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> Any:
    labels = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", context, parameter)
        labels[name] = value
    return labels or None
