"""Plans: from a document to effects, changes and violations.

Nothing is written, and the facts stay as they are. Planning on the same facts gives the same
result; a commit plans again, and compares the digest.
"""

from collections.abc import Iterable

from msgspec import Struct

from moorage.core.clock import Instant
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.capacity import units_ok
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Allocations
from moorage.core.ledger.reshaping import (
    drafting,
    final_state,
    own_tree,
    shape,
    splits,
    totals,
)
from moorage.core.ledger.reshaping.conservation import conserved
from moorage.core.ledger.reshaping.effects import Effect, Summary, digest_of, effects_of, summary_of
from moorage.core.ledger.reshaping.final_state import FinalState
from moorage.core.ledger.reshaping.fitting import GAVE_UP, INFEASIBLE, Item, fit
from moorage.core.ledger.reshaping.inverse import Inverse, Undoing, inverse_of, keys_for
from moorage.core.ledger.reshaping.own_tree import Machine
from moorage.core.ledger.reshaping.plan import (
    Generations,
    ReshapePlan,
    emptied_providers,
    named_providers,
)
from moorage.core.ledger.reshaping.splits import Split
from moorage.core.ledger.reshaping.tenants import NO_LEASES, Leases, Note, notes_of
from moorage.core.ledger.reshaping.violations import Violation, ViolationCode
from moorage.core.ledger.reshaping.wanted import Key, Wanted, held_at, holders_by_place


class Planned(Struct, frozen=True):
    """The result of planning. With violations it is still shown, as far as it is known.

    Attributes:
        effects: what would change, in order.
        digest: of the effects.
        summary: for people.
        violations: why it cannot be committed; empty: it can.
        generations: of the existing providers and consumers that were read.
        changes: what a commit writes; empty if there are violations.
        inverse: what undoes it; None if there are violations.
        notes: what an operator should think of.
    """

    effects: tuple[Effect, ...]
    digest: str
    summary: Summary
    violations: tuple[Violation, ...]
    generations: Generations
    changes: Changes
    inverse: Inverse | None
    notes: tuple[Note, ...] = ()


def plan_reshape(
    facts: Facts,
    now: Instant,
    plan: ReshapePlan,
    leases: Leases = NO_LEASES,
    author: Machine | None = None,
) -> Planned:
    """Plan a reshape.

    Args:
        facts: with what `plan.keys_for` names; they stay as they are.
        now: the time of the first written row.
        plan: what is wanted.
        leases: those of the consumers in `plan.losing_consumers`.
        author: the machine whose plan it is; None: it is an operator's, who may do everything.
    """
    wanted = Wanted()
    found = [] if author is None else list(own_tree.beyond(facts, plan, author))
    found += drafting.too_large(facts, plan)
    if found:
        return refused(now, found, facts)
    found += drafting.outdated(facts, plan)
    found += drafting.unknown_consumers(facts, plan)
    found += drafting.draft(facts, plan, wanted)
    moved = splits.splits_of(facts, plan, None if author is None else author.agent)
    sums = totals.totals_of(facts, plan, moved)
    contradictions = list(totals.figures_after(facts, plan, moved, sums, wanted))
    _allocate(facts, plan, wanted, moved)
    _fit(FinalState(facts, wanted), moved)
    state = FinalState(facts, wanted)
    found += drafting.one_tree(facts, plan, state.forest)
    found += shape.judged(facts, wanted, state.forest)
    for split in moved:
        found += split.violations
    found += contradictions
    found += final_state.judged(state)
    found += conserved(facts, plan, wanted)
    emptied = emptied_providers(plan)
    return _planned(now, state, found, named_providers(plan), emptied, leases)


def refused(now: Instant, found: Iterable[Violation], facts: Facts | None = None) -> Planned:
    """Return the result for a plan that is not planned, because of these violations."""
    known = Facts(frozenset(), frozenset()) if facts is None else facts
    return _planned(now, FinalState(known, Wanted()), [*found], set(), set(), NO_LEASES)


def plan_undo(
    facts: Facts,
    now: Instant,
    inverse: Inverse,
    leases: Leases = NO_LEASES,
    leave_out: frozenset[ConsumerId] = frozenset(),
) -> Planned:
    """Plan the undoing of a reshape on the present state.

    Args:
        facts: with what `inverse.keys_for` names; they stay as they are.
        now: the time of the first written row.
        inverse: as `Planned.inverse` of the reshape; that of the result does the reshape again.
        leases: those of the consumers in `inverse.losing_consumers`.
        leave_out: consumers that the reshape removed and that are not created again.
    """
    undoing = Undoing(facts, inverse, leases, leave_out)
    state = FinalState(facts, undoing.wanted)
    found = undoing.violations
    found += shape.judged(facts, undoing.wanted, state.forest)
    found += final_state.judged(state)
    return _planned(now, state, found, set(), keys_for(inverse).holders, leases)


def _planned(
    now: Instant,
    state: FinalState,
    found: list[Violation],
    named: set[ProviderId],
    emptied: set[ProviderId],
    leases: Leases,
) -> Planned:
    effects = effects_of(state)
    violations = tuple(dict.fromkeys(found))
    summary = summary_of(state, named)
    return Planned(
        effects,
        digest_of(effects),
        summary,
        violations,
        _generations(state, summary, emptied),
        Changes() if violations else final_state.written(state, now),
        None if violations else inverse_of(state, effects, leases),
        notes_of(state.facts, state.wanted, leases),
    )


def _generations(state: FinalState, summary: Summary, emptied: set[ProviderId]) -> Generations:
    """Return those of this plan alone: a batch may have loaded more."""
    facts = state.facts
    shown = [one.provider for one in summary.providers]
    owners = {owner for uuid in emptied for owner in facts.holders.get(uuid, ())}
    owners |= state.wanted.allocations.keys()
    return Generations(
        {uuid: facts.providers[uuid].generation for uuid in shown if uuid in facts.providers},
        {
            uuid: facts.consumers[uuid].generation
            for uuid in sorted(owners)
            if uuid in facts.consumers
        },
    )


def _allocate(facts: Facts, plan: ReshapePlan, wanted: Wanted, moved: list[Split]) -> None:
    """Set the wanted allocations: those that splits place, without what is released."""
    for split in moved:
        for consumer, places in split.placed.items():
            if consumer in facts.consumers:
                _transfer(facts, wanted, consumer, split.source, places)
    sources = {split.source for split in moved}
    holders = holders_by_place(facts) if plan.release else {}
    for key, spec in wanted.figures.items():
        if spec is None and key not in sources:
            for consumer in holders.get(key, ()):
                if consumer in plan.release:
                    _transfer(facts, wanted, consumer, key, {})
    _vacate(facts, plan, wanted)
    for consumer in [uuid for uuid in wanted.allocations if _is_same(facts, wanted, uuid)]:
        del wanted.allocations[consumer]


def _vacate(facts: Facts, plan: ReshapePlan, wanted: Wanted) -> None:
    """Take from consumers what they hold of the providers that they vacate."""
    for consumer, vacated in plan.vacate.items():
        if (held := facts.consumers.get(consumer)) is not None:
            after = wanted.allocations.get(consumer, held.allocations)
            kept = {uuid: dict(own) for uuid, own in after.items() if uuid not in vacated}
            wanted.allocations[consumer] = kept


def _transfer(
    facts: Facts, wanted: Wanted, consumer: ConsumerId, source: Key, places: dict[Key, int]
) -> None:
    """Take what a consumer holds at a source now, and give it units at other places."""
    after = wanted.allocations.get(consumer)
    if after is None:
        after = wanted.allocations[consumer] = _copied(facts.consumers[consumer].allocations)
    before = held_at(facts, consumer, source)
    for (uuid, name), amount in [(source, -before), *places.items()]:
        own = after.setdefault(uuid, {})
        own[name] = own.get(name, 0) + amount
        if not own[name]:
            del own[name]
        if not own:
            del after[uuid]


def _copied(held: Allocations) -> Allocations:
    return {uuid: dict(own) for uuid, own in held.items()}


def _is_same(facts: Facts, wanted: Wanted, consumer: ConsumerId) -> bool:
    return facts.consumers[consumer].allocations == wanted.allocations[consumer]


def _fit(state: FinalState, moved: list[Split]) -> None:
    """Choose a place for each consumer that a policy lets fit; splits with violations are left."""
    facts, wanted = state.facts, state.wanted
    items = [item for split in moved if not split.violations for item in split.fitted]
    rooms = _rooms(facts, wanted, items)
    usable = _usable(state, items, rooms)
    chosen = fit(usable, rooms) if usable else []
    failed = chosen is INFEASIBLE or chosen is GAVE_UP
    if chosen is INFEASIBLE or chosen is GAVE_UP:
        _refuse(moved, chosen is GAVE_UP, [item for item in usable if not item.options])
    else:
        for item, key in chosen:
            _transfer(facts, wanted, item.consumer, item.source, {key: item.amount})
    for split in moved:
        if split.violations or (failed and split.fitted):
            wanted.unsettled.update((split.source, *split.targets))


def _rooms(facts: Facts, wanted: Wanted, items: list[Item]) -> dict[Key, int]:
    """Return the room at each target once all items have left their sources.

    A residual source has none, even if another split has it as a target.
    """
    left = Wanted(figures=wanted.figures, excess=wanted.excess)
    left.allocations = {uuid: _copied(held) for uuid, held in wanted.allocations.items()}
    for item in items:
        _transfer(facts, left, item.consumer, item.source, {})
    without = FinalState(facts, left)
    options = dict.fromkeys(key for one in _distinct(items) for key in one)
    return {
        key: 0 if key in wanted.residual else final_state.room_at(without, key) for key in options
    }


def _usable(state: FinalState, items: list[Item], rooms: dict[Key, int]) -> list[Item]:
    """Return the items, each with the places that admit it at all."""
    specs = {key: spec for key in rooms if (spec := state.spec_of(key)) is not None}
    known: dict[tuple[int, int], tuple[Key, ...]] = {}
    sets = {id(options): frozenset(options) for options in _distinct(items)}
    usable = []
    for item in items:
        present = {key: state.amount_at(item.consumer, key) for key in _held(state, item)}
        amount, alike = item.amount, (id(item.options), item.amount)
        options = known.get(alike)
        beside = not sets[id(item.options)].isdisjoint(present)
        if options is None or beside:
            options = tuple(
                key
                for key in item.options
                if key in specs
                and amount <= rooms[key]
                and _admits(specs[key], amount + present.get(key, 0))
            )
        if not beside:
            known[alike] = options
        usable.append(Item(item.consumer, item.source, item.amount, options))
    return usable


def _distinct(items: list[Item]) -> list[tuple[Key, ...]]:
    """Return the options of items, each object once: thousands of items share one."""
    return list({id(item.options): item.options for item in items}.values())


def _held(state: FinalState, item: Item) -> list[Key]:
    held = state.wanted.allocations.get(item.consumer)
    if held is None:
        held = state.facts.consumers[item.consumer].allocations
    return [(uuid, name) for uuid, amounts in held.items() for name in amounts]


def _admits(spec: InventorySpec, amount: int) -> bool:
    return bool(units_ok(spec.min_unit, spec.max_unit, spec.step_size, amount))


def _refuse(moved: list[Split], gave_up: bool, hopeless: list[Item]) -> None:
    by_source = {item.source: item for item in reversed(hopeless)}
    for split in moved:
        if split.violations or not split.fitted:
            continue
        item = by_source.get(split.source)
        what = f"{split.source[1]} from provider {split.source[0]}"
        if gave_up:
            message = f"The search for places of all {what} took too many steps; there may be some."
            split.refuse(ViolationCode.GAVE_UP, message)
        elif item is not None:
            message = (
                f"No target has room for the {item.amount} of consumer {item.consumer}: {what}."
            )
            split.refuse(ViolationCode.INFEASIBLE, message, item.consumer, item.amount)
        elif not hopeless:
            split.refuse(ViolationCode.INFEASIBLE, f"No distribution of {what} fits.")
