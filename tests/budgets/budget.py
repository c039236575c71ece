"""The file of budgets, and how figures are compared with it. A budget may only fall.

Counts differ between versions of Python, so each has budgets of its own.
"""

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.budgets.counting import KINDS
from tests.budgets.figures import WAYS, Figure

FILE = Path(__file__).with_name("budgets.toml")
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
TOLERANCE = 0.02
"""How much more or less than its budget a figure may be."""

DIGITS = 4
"""Decimals of a figure: a hop of a batch is a 32nd of a hop for each operation."""

HEAD = """\
# What one operation may cost on each version of Python: calls of Python functions, resumed
# coroutines and generators, hops between the event loop and a thread, and SQL statements, of which
# one that writes many rows counts once a row. `make budgets` lowers these figures. `make check`
# fails if one of them is exceeded by more than 2 %.
"""

Numbers = Mapping[str, float]
"""How many of each kind."""

Budgets = dict[str, dict[str, Numbers]]
"""Of each operation in each of the ways."""


class Difference(NamedTuple):
    """A figure that is not as budgeted."""

    figure: Figure
    kind: str
    budget: float | None
    """None: the file has none."""

    @property
    def is_over(self) -> bool:
        """Whether the figure is higher."""
        return self.budget is None or self.figure.numbers[self.kind] > self.budget

    def __str__(self) -> str:
        figure = self.figure
        told = f"{figure.operation}, {figure.way}: {figure.numbers[self.kind]:.10g} {self.kind}"
        if self.budget is None:
            return f"{told}; {FILE.name} has no budget for it"
        change = f" ({figure.numbers[self.kind] / self.budget - 1:+.1%})" if self.budget else ""
        return f"{told}, budget {self.budget:.10g}{change}"


def read(path: Path = FILE, version: str = VERSION) -> Budgets | None:
    """Return the budgets for a version of Python; None: there are none."""
    found: Budgets | None = tomllib.loads(path.read_text()).get(f"python {version}")
    return found


def differences(figures: Iterable[Figure], budgets: Budgets) -> Iterator[Difference]:
    """Return the figures that are higher or lower than their budgets by more than `TOLERANCE`."""
    for figure in figures:
        budget = budgets.get(figure.operation, {}).get(figure.way)
        for kind, number in figure.numbers.items():
            if budget is None or abs(number - budget[kind]) > TOLERANCE * budget[kind]:
                yield Difference(figure, kind, None if budget is None else budget[kind])


def write(
    figures: Iterable[Figure], *, raised: bool, path: Path = FILE, version: str = VERSION
) -> None:
    """Write figures as the budgets of a version; only lower ones, unless they may be raised."""
    old = read(path, version) or {}
    new: Budgets = {}
    for figure in figures:
        numbers = {kind: round(number, DIGITS) for kind, number in figure.numbers.items()}
        before = old.get(figure.operation, {}).get(figure.way)
        if before is not None and not raised:
            numbers = {kind: min(number, before[kind]) for kind, number in numbers.items()}
        new.setdefault(figure.operation, {})[figure.way] = numbers
    everything = {**tomllib.loads(path.read_text()), f"python {version}": new}
    parts = (_section(name, everything[name]) for name in sorted(everything))
    path.write_text("\n".join([HEAD, *parts]))


def _section(name: str, budgets: Budgets) -> str:
    lines = [f'["{name}"]']
    for operation, ways in budgets.items():
        for way in WAYS:
            numbers = ", ".join(f"{kind} = {ways[way][kind]:.10g}" for kind in KINDS)
            lines.append(f'"{operation}".{way} = {{ {numbers} }}')
    return "\n".join(lines) + "\n"
