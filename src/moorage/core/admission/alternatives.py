"""Requests for any of several alternatives: one ticket in several lines, which is granted once.

While it waits, the `needs` of such a ticket are what it stands in line for: of each pool, and of
each set of labels, the least that an alternative needs. So it has a row in the line of every pool
that an alternative names, and all that follows lines finds it there. With its grant they become the
needs of one alternative, and it leaves the other lines in the same batch.
Source: docs/decisions/0063-any-of.md.
"""

from collections.abc import Collection, Iterable, Sequence

from moorage.core.admission.model import Lease, Need
from moorage.core.counting import counted
from moorage.core.errors import Code, Error
from moorage.core.limits import ALTERNATIVES_MAX, ALTERNATIVES_NEEDS_MAX, NEEDS_MAX
from moorage.core.wishes import labels_text

Needs = tuple[Need, ...]


def completed(common: Iterable[Need], any_of: Sequence[Iterable[Need]]) -> tuple[Needs, ...]:
    """Return complete alternatives: each with the common needs, ordered as `Lease.needs`.

    Raises INVALID: there are too many, one is empty, or two are equal.
    """
    if len(any_of) > ALTERNATIVES_MAX:
        raise Error(Code.INVALID, f"any_of may have at most {ALTERNATIVES_MAX} alternatives.")
    shared = tuple(common)
    found: list[Needs] = []
    for own in map(tuple, any_of):
        if not own:
            raise Error(Code.INVALID, "Each alternative of any_of must have at least one need.")
        if len(shared) + len(own) > NEEDS_MAX:
            raise Error(
                Code.INVALID,
                f"An alternative must have at most {NEEDS_MAX} needs, including the common ones.",
            )
        needs = _sorted((*shared, *own))
        if needs in found:
            raise Error(Code.INVALID, f"any_of has an alternative twice: {text_of(own)}.")
        found.append(needs)
    if sum(map(len, found)) > ALTERNATIVES_NEEDS_MAX:
        raise Error(
            Code.INVALID,
            f"All alternatives together may have at most {ALTERNATIVES_NEEDS_MAX} needs; the common"
            " needs count once for each alternative.",
        )
    return tuple(found)


def lined_up(alternatives: Iterable[Needs]) -> Needs:
    """Return the `needs` of a ticket with these alternatives while it waits."""
    least: dict[tuple[str, str, str], Need] = {}
    for needs in alternatives:
        for need in needs:
            at = (need.pool, need.state, need.wanted)
            known = least.get(at)
            if known is None or need.units < known.units:
                least[at] = need
    return _sorted(least.values())


def asked(needs: Needs, alternatives: tuple[Needs, ...]) -> tuple[Needs, ...]:
    """Return what was asked for: the alternatives, or the needs as the only one."""
    return alternatives or (needs,)


def pools_named(lease: Lease) -> set[str]:
    """Return the pools that a lease needs or has asked for, of which it never gains any."""
    found = {need.pool for need in lease.needs}
    for needs in lease.alternatives:
        found.update(need.pool for need in needs)
    return found


def remaining(alternatives: Iterable[Needs], pools: Collection[str]) -> tuple[Needs, ...]:
    """Return the alternatives all of whose pools still exist."""
    return tuple(needs for needs in alternatives if all(need.pool in pools for need in needs))


def text_of(needs: Iterable[Need]) -> str:
    """Return needs for people: `a and 2 units of b with region=eu`."""
    return " and ".join(map(_text, needs))


def _text(need: Need) -> str:
    labels = f" with {labels_text(need.wanted)}" if need.wanted else ""
    units = "" if need.units == 1 else f"{counted(need.units, 'unit')} of "
    return f"{units}{need.pool}{labels}"


def _sorted(needs: Iterable[Need]) -> Needs:
    return tuple(sorted(needs, key=_place))


def _place(need: Need) -> tuple[str, str, str]:
    return (need.pool, need.state, need.wanted)
