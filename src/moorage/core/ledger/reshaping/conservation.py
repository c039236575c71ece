"""No consumer gains or loses units: judged from what was and what will be, not from the moves."""

from collections.abc import Iterator, Mapping

from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import Allocations
from moorage.core.ledger.reshaping.plan import Place, ReshapePlan
from moorage.core.ledger.reshaping.violations import Violation, ViolationCode
from moorage.core.ledger.reshaping.wanted import Wanted, held_at


def conserved(facts: Facts, plan: ReshapePlan, wanted: Wanted) -> Iterator[Violation]:
    """Yield consumers whose units of a class change; classes that a move renames count as one.

    Those in `release` may lose units; those in `accept_drift` get what moves assign to them.
    """
    names = _renamed(plan)
    drifts = _drifts(facts, plan, names)
    for uuid, after in sorted(wanted.allocations.items()):
        held = facts.consumers.get(uuid)
        sums = _sums(names, {} if held is None else held.allocations)
        for name, amount in sorted(_sums(names, after).items()):
            sums[name] = sums.get(name, 0) - amount
        for name, lost in sorted(sums.items()):
            beyond = lost + drifts.get((uuid, name), 0)
            if beyond and not (beyond > 0 and uuid in plan.release):
                yield _violation(uuid, name, -beyond)


def _drifts(
    facts: Facts, plan: ReshapePlan, names: Mapping[str, str]
) -> dict[tuple[ConsumerId, str], int]:
    """Return how many units more than they have moves assign to those in `accept_drift`."""
    assigned: dict[tuple[ConsumerId, Place], dict[ProviderId, int]] = {}
    for move in plan.moves:
        for uuid in move.assign.keys() & plan.accept_drift:
            assigned.setdefault((uuid, move.source), {}).update(move.assign[uuid])
    drifts: dict[tuple[ConsumerId, str], int] = {}
    for (uuid, source), amounts in assigned.items():
        key = uuid, names.get(source.resource_class, source.resource_class)
        held = held_at(facts, uuid, (source.provider, source.resource_class))
        drifts[key] = drifts.get(key, 0) + sum(amounts.values()) - held
    return drifts


def _violation(uuid: ConsumerId, name: str, amount: int) -> Violation:
    verb = "gain" if amount > 0 else "lose"
    message = f"Consumer {uuid} would {verb} {abs(amount)} of {name}; the plan does not allow it."
    code = ViolationCode.NOT_CONSERVED
    return Violation(code, message, resource_class=name, consumer=uuid, amount=amount)


def _renamed(plan: ReshapePlan) -> dict[str, str]:
    """Return one name for all classes that moves turn into each other."""
    names: dict[str, str] = {}
    for move in plan.moves:
        pair = {move.source.resource_class, move.target.resource_class}
        alike = {names.get(name, name) for name in pair}
        merged = min(alike)
        names.update((name, merged) for name, other in list(names.items()) if other in alike)
        names.update(dict.fromkeys(pair | alike, merged))
    return names


def _sums(names: Mapping[str, str], held: Allocations) -> dict[str, int]:
    sums: dict[str, int] = {}
    for amounts in held.values():
        for name, amount in amounts.items():
            kept = names.get(name, name)
            sums[kept] = sums.get(kept, 0) + amount
    return sums
