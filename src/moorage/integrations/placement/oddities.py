"""What is odd in the original's data, and what becomes of it.

Each kind has a stable code. Nothing is repaired silently: what is kept as it is, is listed; what
cannot be kept is refused, unless the operator names its code and what to do.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

NAMED_LENGTH_MAX = 1_000
"""Characters in the description of one oddity; a column of the original may have a gigabyte."""

LISTED_MAX = 100_000
"""Oddities of one kind that the report names; more are only counted."""


class Fate(StrEnum):
    """What becomes of something odd."""

    KEPT = "kept"
    LEFT_OUT = "left out"
    COMPLETED = "completed"
    REFUSED = "refused"


@dataclass(frozen=True)
class Kind:
    """One kind of oddity: what it is, and what an operator may choose. Neither: it is kept."""

    meaning: str
    leave_out: str | None = None
    complete: str | None = None


KINDS = {
    # What is kept.
    "over_capacity": Kind("more is allocated than the inventory has"),
    "reserved_over_total": Kind("more of an inventory is reserved than there is"),
    "unit_bounds_crossed": Kind("an inventory has a min_unit above its max_unit"),
    "consumer_incomplete": Kind(
        "a consumer of the project or user 00000000-0000-0000-0000-000000000000, which stands for"
        " an unknown one"
    ),
    "consumer_typeless": Kind("a consumer without a type, written before microversion 1.38"),
    "uuid_respelled": Kind(
        "a UUID that is not in lower case with dashes: it is written so, and found by both"
    ),
    "time_missing": Kind(
        "a row without the time of its creation: it gets the time of its change, else 1970"
    ),
    "name_unused": Kind(
        "a name that this release does not know, and that nothing uses: it is not carried over"
    ),
    "api_time_unknown": Kind(
        "the API does not tell when this was created: it gets the time of its last change"
    ),
    "api_blind": Kind("the API cannot show this, only the database"),
    # What the original's own migrations complete.
    "consumer_missing": Kind(
        "allocations of a consumer without a record, from before Stein",
        leave_out="the allocations are left out",
        complete="the consumer gets the project and user 00000000-0000-0000-0000-000000000000, as"
        " from `placement-manage db online_data_migrations`",
    ),
    "root_missing": Kind(
        "a provider without a root, from before Rocky",
        complete="the root is computed from the parents, as by `placement-manage db"
        " online_data_migrations`",
    ),
    "root_wrong": Kind(
        "a provider whose root is not the top of its tree",
        complete="the root is computed from the parents",
    ),
    "generation_missing": Kind("a row without a generation", complete="it gets 0"),
    "allocation_twice": Kind(
        "several allocations of one consumer, provider and resource class",
        leave_out="all but the last are left out, which is what GET /allocations/{consumer} shows",
        complete="they are added up, as usages and capacity count them",
    ),
    "consumer_type_missing": Kind(
        "a consumer whose type has no record, or no valid name",
        complete="the consumer has no type",
    ),
    "consumer_owner_missing": Kind(
        "a consumer whose project or user has no record, or no valid name",
        leave_out="the consumer and its allocations are left out",
        complete="it is 00000000-0000-0000-0000-000000000000",
    ),
    # What must be left out, or be changed in the original.
    "consumer_empty": Kind(
        "a consumer without allocations, which a refused request has left behind",
        leave_out="the consumer is left out, so the next request may create it",
    ),
    "provider_uuid_invalid": Kind(
        "a provider whose UUID is none, or whose UUID or id is another one's",
        leave_out="the provider is left out, with all below it",
    ),
    "provider_name_invalid": Kind(
        "a provider without a name, or with one that is too long, or is another one's",
        leave_out="the provider is left out, with all below it",
    ),
    "parent_missing": Kind(
        "a provider whose parent is not there, or is left out",
        leave_out="the provider is left out, with all below it",
    ),
    "parent_cycle": Kind(
        "a provider that is below itself",
        leave_out="the provider is left out, with all below it",
    ),
    "inventory_without_provider": Kind(
        "an inventory of a provider that is not there, or is left out",
        leave_out="the inventory is left out",
    ),
    "inventory_twice": Kind(
        "several inventories of one provider and resource class",
        leave_out="all but the first are left out",
    ),
    "inventory_invalid": Kind(
        "an inventory with a number out of bounds",
        leave_out="the inventory is left out",
    ),
    "class_unknown": Kind(
        "an inventory or allocation of a resource class that this release does not know",
        leave_out="the inventory or allocation is left out",
    ),
    "trait_unknown": Kind(
        "a provider with a trait that this release does not know, or that has no record",
        leave_out="the provider has it no longer",
    ),
    "trait_without_provider": Kind(
        "a trait of a provider that is not there, or is left out",
        leave_out="the trait of the provider is left out",
    ),
    "aggregate_invalid": Kind(
        "an aggregate whose UUID is none, or that has no record",
        leave_out="the provider is in it no longer",
    ),
    "aggregate_without_provider": Kind(
        "an aggregate of a provider that is not there, or is left out",
        leave_out="the provider is in it no longer",
    ),
    "consumer_uuid_invalid": Kind(
        "a consumer whose UUID is none, or is another one's",
        leave_out="the consumer and its allocations are left out",
    ),
    "allocation_without_provider": Kind(
        "an allocation on a provider that is not there, or is left out",
        leave_out="the allocation is left out",
    ),
    "allocation_without_inventory": Kind(
        "an allocation of a resource class of which the provider has no inventory",
        leave_out="the allocation is left out",
    ),
    "allocation_invalid": Kind(
        "an allocation of less than 1, or more than an integer holds",
        leave_out="the allocation is left out",
    ),
}
"""All kinds, by code."""


@dataclass
class Found:
    """The oddities of one kind in one reading."""

    fate: Fate
    count: int = 0
    named: list[str] = field(default_factory=list)


class Oddities:
    """Collects what is odd in one reading, and says what becomes of each."""

    def __init__(self, leave_out: Collection[str] = (), complete: Collection[str] = ()) -> None:
        """Decide by the operator's choices. Raises ValueError: a code that has no such choice."""
        for option, codes in (("--leave-out", leave_out), ("--complete", complete)):
            for code in codes:
                _check_choice(option, code)
        if both := set(leave_out) & set(complete):
            raise ValueError(f"give either --leave-out {min(both)} or --complete {min(both)}")
        self._leave_out = frozenset(leave_out)
        self._complete = frozenset(complete)
        self.found: dict[str, Found] = {}

    def note(self, code: str, what: str) -> Fate:
        """Add an oddity, described for people; return what becomes of it."""
        found = self.found.get(code)
        if found is None:
            found = self.found[code] = Found(self._fate(code))
        found.count += 1
        if len(found.named) < LISTED_MAX:
            found.named.append(what[:NAMED_LENGTH_MAX])
        return found.fate

    def _fate(self, code: str) -> Fate:
        kind = KINDS[code]
        if kind.leave_out is None and kind.complete is None:
            return Fate.KEPT
        if code in self._leave_out:
            return Fate.LEFT_OUT
        return Fate.COMPLETED if code in self._complete else Fate.REFUSED

    def refused(self) -> Iterator[tuple[str, Found]]:
        """Yield the kinds that need a choice of the operator."""
        for code, found in sorted(self.found.items()):
            if found.fate is Fate.REFUSED:
                yield code, found


def _check_choice(option: str, code: str) -> None:
    kind = KINDS.get(code)
    if kind is None:
        raise ValueError(f"{option} {code}: there is no such code")
    if (kind.leave_out if option == "--leave-out" else kind.complete) is None:
        raise ValueError(f"{option} {code}: {_choices(code)}")


def _choices(code: str) -> str:
    kind = KINDS[code]
    found = [
        option
        for option, text in (("--leave-out", kind.leave_out), ("--complete", kind.complete))
        if text is not None
    ]
    return f"only {' or '.join(found)} can be chosen" if found else "it is kept in any case"


def choices_text(code: str) -> str:
    """Return the options that settle a kind, for people."""
    kind = KINDS[code]
    options = (
        (f"--complete {code}", kind.complete),
        (f"--leave-out {code}", kind.leave_out),
    )
    return "; ".join(f"{option}: {text}" for option, text in options if text is not None)
