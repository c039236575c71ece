"""Options that commands share; those for settings: `settings.py`."""

import math
from collections.abc import Callable
from socket import socket
from typing import Any, TypeVar

import click

from moorage.cli.support.output import USAGE, Failure

C = TypeVar("C", bound=Callable[..., Any])

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
