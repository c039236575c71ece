"""How large a plan may be, judged before anything is loaded: each entry may be a violation."""

from collections.abc import Iterator, Mapping, Sized
from itertools import chain
from typing import Any

from moorage.core.errors import Code, Error
from moorage.core.ledger.reshaping.plan import ReshapePlan
from moorage.core.limits import IDENTIFIER_LENGTH_MAX, RESHAPE_ENTRIES_MAX
from moorage.core.texts import check_reason


def check_size(plan: ReshapePlan, most: int = RESHAPE_ENTRIES_MAX) -> None:
    """Check how large a plan is.

    Raises LIMIT_EXCEEDED: there are more than `most` entries; INVALID: a name or reason is too
    long.

    Violations repeat the name of a class for each consumer.
    """
    entries = _entries(plan)
    if entries > most:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"The plan has {entries} entries; at most {most} are allowed.",
        )
    if any(len(name) > IDENTIFIER_LENGTH_MAX for name in _names(plan)):
        raise Error(
            Code.INVALID,
            f"Names of classes and traits have at most {IDENTIFIER_LENGTH_MAX} characters.",
        )
    for words in plan.drain.values():
        check_reason(words)


def _entries(plan: ReshapePlan) -> int:
    """Return how many members all lists and objects of a plan have."""
    flat: tuple[Sized, ...] = (
        *(plan.create, plan.parents, plan.rename, plan.moves, plan.delete, plan.stay),
        *(plan.release, plan.accept_drift, plan.fungible, plan.drain),
        *(plan.expect.providers, plan.expect.consumers),
    )
    nested: tuple[Mapping[Any, Sized], ...] = (
        *(plan.inventories, plan.traits, plan.aggregates, plan.vacate),
        *(move.assign for move in plan.moves),
    )
    inner = sum(len(one) for outer in nested for one in outer.values())
    return sum(map(len, flat)) + sum(map(len, nested)) + inner


def _names(plan: ReshapePlan) -> Iterator[str]:
    for move in plan.moves:
        yield move.source.resource_class
        yield move.target.resource_class
    yield from plan.fungible
    yield from chain.from_iterable(plan.inventories.values())
    yield from chain.from_iterable(plan.traits.values())
