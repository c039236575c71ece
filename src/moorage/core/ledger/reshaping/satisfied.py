"""Whether a plan's shape is there already, so that nothing is left to do.

A machine sends the same plan after each boot. What of it is there is left out: children that stand
where it wants them, moves out of inventories that are gone. If the rest changes nothing, the plan
is satisfied, even if others have made the shape. Guests that came and went since do not matter.
"""

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.reshaping.own_tree import Machine
from moorage.core.ledger.reshaping.plan import Move, NewProvider, Place, ReshapePlan
from moorage.core.ledger.reshaping.planning import plan_reshape


def is_satisfied(facts: Facts, now: Instant, plan: ReshapePlan, author: Machine) -> bool:
    """Return whether the ledger has the shape that a plan leads to."""
    rest = replace(
        plan,
        create=tuple(new for new in plan.create if not _stands(facts, new)),
        moves=tuple(move for move in plan.moves if not _is_done(facts, move)),
        delete=frozenset(uuid for uuid in plan.delete if uuid in facts.providers),
    )
    planned = plan_reshape(facts, now, rest, author=author)
    return not planned.violations and not planned.effects


def _stands(facts: Facts, new: NewProvider) -> bool:
    held = facts.providers.get(new.uuid)
    return held is not None and (held.name, held.parent) == (new.name, new.parent)


def _is_done(facts: Facts, move: Move) -> bool:
    """Return whether nothing is left to move, and there is something where it would go."""
    return not _has(facts, move.source) and _has(facts, move.target)


def _has(facts: Facts, place: Place) -> bool:
    return place.resource_class in facts.inventories_of(place.provider)
