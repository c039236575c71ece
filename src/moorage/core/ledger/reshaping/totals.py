"""The figures of inventories after a plan: totals follow the moves, the rest is given or stays.

Totals count units; an allocation ratio is not moved.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import asdict, replace

from moorage.core.errors import Error
from moorage.core.ledger.capacity import total_for
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.inventory import InventorySpec, check_figures
from moorage.core.ledger.reshaping.final_state import excess_before
from moorage.core.ledger.reshaping.plan import Figures, Policy, ReshapePlan
from moorage.core.ledger.reshaping.splits import Split, key_of
from moorage.core.ledger.reshaping.violations import Violation, ViolationCode
from moorage.core.ledger.reshaping.wanted import Key, Wanted, spec_of

_NO_FIGURES = Figures()


class Totals(Struct):
    """How many units each place gains or loses by the moves, and whose figures a new one takes.

    `excess`: units in use that never fitted, and move along with a whole inventory.
    """

    gained: dict[Key, int] = {}
    patterns: dict[Key, Key] = {}
    excess: dict[Key, float] = {}

    def add(self, source: Key, target: Key, amount: int) -> None:
        """Count one move."""
        self.gained[source] = self.gained.get(source, 0) - amount
        self.gained[target] = self.gained.get(target, 0) + amount
        self.patterns.setdefault(target, source)


def totals_of(facts: Facts, plan: ReshapePlan, splits: list[Split]) -> Totals:
    """Return what the moves do to the totals; a split that takes too much gets a violation."""
    totals = Totals()
    for split in splits:
        source = split.source
        held = facts.inventories_of(source[0]).get(source[1])
        if held is None:
            continue
        named = sum(move.amount or 0 for move in split.moves)
        left = held.total - named
        if left < 0:
            message = (
                f"The moves take {named} of {source[1]} from provider {source[0]}, which has"
                f" {held.total}."
            )
            split.refuse(ViolationCode.SOURCE_SHORT, message, amount=-left)
        rest = max(left - _kept(split, spec_of(held), _override(plan, source)), 0)
        for move in split.moves:
            totals.add(source, key_of(move.target), rest if move.amount is None else move.amount)
        taken = named + (rest if any(move.amount is None for move in split.moves) else 0)
        if taken == held.total and len(split.targets) == 1:  # the whole inventory goes there
            target = split.targets[0]
            totals.excess[target] = totals.excess.get(target, 0) + excess_before(facts, source)
    return totals


def _kept(split: Split, spec: InventorySpec, given: Figures | None) -> int:
    """Return how many units of the source stay: for consumers, and what is reserved beside them.

    What was reserved in full is so however little is left, and so is a residual source.
    """
    stays = sum(amounts.get(split.source, 0) for amounts in split.placed.values())
    stated = None if given is None else given.reserved
    beside = 0
    if stated is not None and (stays or split.policy is Policy.ONLY_IF_UNUSED):
        beside = max(stated, 0)
    elif split.policy is Policy.ONLY_IF_UNUSED and spec.reserved < spec.total:
        beside = spec.reserved
    total = total_for(stays, beside, merged(spec, given).allocation_ratio)
    return spec.total if total is None else total


def figures_after(
    facts: Facts, plan: ReshapePlan, splits: list[Split], totals: Totals, wanted: Wanted
) -> Iterator[Violation]:
    """Set the wanted figures, and which sources are residual; yield contradictions."""
    for split in splits:
        if split.policy is Policy.ONLY_IF_UNUSED:
            wanted.unused_only.add(split.source)
        elif split.stays:
            wanted.residual.add(split.source)
    for key in sorted(totals.gained):
        yield from _moved(facts, plan, totals, wanted, key)
    for uuid, classes in sorted(plan.inventories.items()):
        for name, figures in sorted(classes.items()):
            if (uuid, name) not in totals.gained and wanted.providers.get(uuid, True):
                yield from _given(facts, wanted, (uuid, name), figures)
    for uuid in plan.delete:  # those who are left there are named one by one
        gone = {(uuid, name) for name in facts.inventories_of(uuid)}
        wanted.figures.update(dict.fromkeys(gone))
        wanted.residual -= gone
        wanted.unused_only -= gone
    for key, spec in list(wanted.figures.items()):
        held = facts.inventories_of(key[0]).get(key[1])
        if spec == (None if held is None else spec_of(held)):
            del wanted.figures[key]
        elif spec is not None and (refusal := _out_of_range(key, spec)):
            yield refusal
            del wanted.figures[key]
            wanted.unsettled.add(key)


def _out_of_range(key: Key, spec: InventorySpec) -> Violation | None:
    try:
        check_figures(*key, spec)
    except Error as refusal:
        return Violation(ViolationCode.FIGURES_INVALID, refusal.message, *key)
    return None


def _moved(
    facts: Facts, plan: ReshapePlan, totals: Totals, wanted: Wanted, key: Key
) -> Iterator[Violation]:
    """Set the figures of a place that takes part in a move."""
    uuid, name = key
    held = facts.inventories_of(uuid).get(name)
    total = (0 if held is None else held.total) + totals.gained[key]
    given = plan.inventories.get(uuid, {}).get(name, _NO_FIGURES)
    stated = 0 if given is None else given.total
    if stated is not None and stated != total:
        message = (
            f"The plan gives {name} of provider {uuid} a total of {stated}, but its moves lead"
            f" to {total}."
        )
        yield Violation(ViolationCode.TOTAL_CONTRADICTS, message, uuid, name, amount=total)
    if total <= 0 or given is None:
        wanted.figures[key] = None
        return
    if held is not None:
        spec = replace(spec_of(held), total=total)
        if key in wanted.residual or 0 < held.total == held.reserved:
            spec = replace(spec, reserved=total)
    else:
        pattern = totals.patterns[key]
        spec = spec_of(facts.inventories_of(pattern[0])[pattern[1]])
        spec = replace(spec, total=total, reserved=0)
    spec = merged(spec, given)
    if spec.reserved != total:
        wanted.residual.discard(key)
    wanted.figures[key] = replace(spec, total=total)
    if totals.excess.get(key):
        wanted.excess[key] = totals.excess[key]


def _given(facts: Facts, wanted: Wanted, key: Key, figures: Figures | None) -> Iterator[Violation]:
    """Set the figures of a place that takes part in no move."""
    uuid, name = key
    held = facts.inventories_of(uuid).get(name)
    if figures is None:
        wanted.figures[key] = None
    elif held is not None:
        wanted.figures[key] = merged(spec_of(held), figures)
    elif figures.total is None:
        message = f"The new inventory of {name} on provider {uuid} needs a total."
        yield Violation(ViolationCode.TOTAL_MISSING, message, uuid, name)
        wanted.unsettled.add(key)
    else:
        wanted.figures[key] = merged(InventorySpec(figures.total), figures)


def merged(spec: InventorySpec, given: Figures | None) -> InventorySpec:
    """Return figures with those that are given instead."""
    if given is None or given == _NO_FIGURES:
        return spec
    return replace(
        spec, **{name: value for name, value in asdict(given).items() if value is not None}
    )


def _override(plan: ReshapePlan, key: Key) -> Figures | None:
    return plan.inventories.get(key[0], {}).get(key[1])
