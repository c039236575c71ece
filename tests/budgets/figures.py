"""Measures each operation, alone and in a batch of requests that arrive at once."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from bench.wire import Answer
from tests.budgets.counting import KINDS, Count
from tests.budgets.driving import CONNECTIONS, Server, serve
from tests.budgets.operations import Chain, chains

WAYS = {"alone": 1, "batch": CONNECTIONS}
"""How many of an operation are sent at once."""

WARM_UP = {"alone": 8, "batch": 2}
"""Rounds that are not counted: they prepare statements, fill caches and start threads."""

ROUNDS = {"alone": 6, "batch": 4}
"""Rounds of which the least counts: the others also did what is done once a second."""

COSTLY_ROUNDS = {"alone": 3, "batch": 1}

Round = dict[str, Counter[Count]]
"""The counts of each operation of a chain."""


@dataclass(frozen=True)
class Figure:
    """What one operation does, in one of the ways."""

    operation: str
    way: str
    numbers: dict[str, float]
    """How many of each kind, for one operation."""
    most: dict[str, list[tuple[str, float]]]
    """The names with the highest numbers of each kind, for one operation."""


TOP = 20
"""The names that a figure keeps of each kind."""


def measure(folder: Path, *, planted: int = 0, only: str = "") -> list[Figure]:
    """Start a server with its data in `folder`, measure everything, stop it.

    Args:
        folder: an empty folder.
        planted: calls that are added to each submitted change.
        only: measure this operation only, and those that belong to it.
    """
    found: list[Figure] = []
    numbers = count(1)
    with serve(folder, planted=planted) as server:
        for chain in chains(server, only):
            for way in WAYS:
                found += _figures(rounds(server, chain, way, numbers), way)
    return found


def rounds(
    server: Server,
    chain: Chain,
    way: str,
    numbers: Iterator[int],
    around: Mapping[str, Callable[[], AbstractContextManager[None]]] | None = None,
) -> list[Round]:
    """Carry out a chain several times after a warm-up; return what counts.

    Args:
        server: the server.
        chain: the chain.
        way: one of the ways.
        numbers: of operations; each gets the next one.
        around: contexts to enter for the steps of some operations, after the warm-up.
    """
    costly = any(step.costly for step in chain)
    warm_up = 0 if costly else WARM_UP[way]
    found = []
    for number in range(warm_up + (COSTLY_ROUNDS if costly else ROUNDS)[way]):
        contexts = (around or {}) if number >= warm_up else {}
        found.append(_round(server, chain, list(islice(numbers, WAYS[way])), contexts))
    return found[warm_up:]


def _round(
    server: Server,
    chain: Chain,
    numbers: list[int],
    around: Mapping[str, Callable[[], AbstractContextManager[None]]],
) -> Round:
    """Carry out a chain once for each of these numbers, each step for all of them at once."""
    found: Round = {}
    answers: list[Answer | None] = [None] * len(numbers)
    for step in chain:
        requests = [
            step.make(number, place, answer)
            for place, (number, answer) in enumerate(zip(numbers, answers, strict=True))
        ]
        with around.get(step.name, nullcontext)():
            answered, counted = server.ask(requests, boskos=step.boskos)
        wrong = [one for one in answered if one.status != step.status]
        assert not wrong, (step.name, wrong[0])
        found.setdefault(step.name, Counter()).update(counted)
        answers = [*answered]
    return found


def _figures(counted: list[Round], way: str) -> Iterator[Figure]:
    """Return a figure for each operation of these rounds."""
    for operation in counted[0]:
        numbers, most = {}, {}
        for kind in KINDS:
            each = [_of_kind(one[operation], kind) for one in counted]
            least = min(each, key=Counter.total)
            numbers[kind] = least.total() / WAYS[way]
            most[kind] = [(name, number / WAYS[way]) for name, number in least.most_common(TOP)]
        yield Figure(operation, way, numbers, most)


def _of_kind(counts: Counter[Count], kind: str) -> Counter[str]:
    return Counter({name: number for (counted, name), number in counts.items() if counted == kind})
