"""The plan that splits inventories of a provider over its children, by evidence.

Consumers without evidence stay, and so does what they hold. The children lack that many units until
a later plan moves the rest: the same file with more evidence is enough for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from uuid import UUID, uuid5

from moorage.client.plans.evidence import Child, Evidence
from moorage.client.plans.plan_error import PlanError
from moorage.wire.providers import ConsumerShown, InventoryShown, ProviderShown
from moorage.wire.reshapes import (
    ReshapeFigures,
    ReshapeMove,
    ReshapePlace,
    ReshapePlan,
    ReshapeProvider,
)

Amounts = dict[str, dict[str, int]]
"""Units of one class by consumer and provider."""


def split_plan(
    parent: ProviderShown,
    children: Mapping[str, ProviderShown],
    consumers: Iterable[ConsumerShown],
    evidence: Evidence,
    *,
    fit: bool = False,
    accept_drift: Iterable[str] = (),
) -> ReshapePlan:
    """Return a plan that moves the classes of the evidence from a provider to its children.

    Args:
        parent: the provider that is split.
        children: those of the evidence that exist, by name.
        consumers: all that hold something of these providers.
        evidence: what the children have, and who uses which of it.
        fit: the server finds a child for consumers without evidence; otherwise they stay.
        accept_drift: consumers for which the evidence counts, whatever the ledger says.

    Raises:
        PlanError: the evidence and the inventories do not fit together.
    """
    _check_children(parent, children, evidence.children)
    uuids = {child.name: _uuid_of(parent, children, child) for child in evidence.children}
    uuids.setdefault(parent.name, parent.uuid)
    _check_names(evidence, uuids)
    known = list(consumers)
    moves: list[ReshapeMove] = []
    staying: set[str] = set()
    for name in evidence.classes:
        split = _Split(parent, children, known, evidence, uuids, name)
        moves += split.moves(fit=fit)
        staying |= split.staying.keys()
    traits = {
        uuids[child.name]: sorted({*had, *child.traits})
        for child in evidence.children
        if {*child.traits} - {*(had := _traits_of(children, child))}
    }
    return ReshapePlan(
        create=[
            ReshapeProvider(uuid=uuids[child.name], name=child.name, parent=parent.uuid)
            for child in evidence.children
            if child.name not in children
        ],
        moves=moves,
        inventories=_inventories(evidence, uuids),
        traits=traits,
        stay=[] if fit else sorted(staying),
        accept_drift=sorted(accept_drift),
        fungible=evidence.classes if fit else [],
    )


class _Split:
    """The moves of one class; `staying` has the units of consumers without evidence."""

    def __init__(
        self,
        parent: ProviderShown,
        children: Mapping[str, ProviderShown],
        consumers: list[ConsumerShown],
        evidence: Evidence,
        uuids: Mapping[str, str],
        name: str,
    ) -> None:
        if name not in parent.inventories:
            raise PlanError(f"{parent.name} has no inventory of {name} to split")
        self._parent, self._name = parent, name
        self._uuids = uuids
        self._source = parent.inventories[name]
        self._figures = {
            child.name: child.figures[name] for child in evidence.children if name in child.figures
        }
        self._before = {
            child: one.inventories[name]
            for child, one in children.items()
            if child in self._figures and name in one.inventories
        }
        _check_figures(parent, name, self._figures, self._before)
        held = {one.uuid: self._held_by(one) for one in consumers}
        self._assign = self._assigned(evidence, held)
        self.staying = {
            consumer: amounts[parent.uuid]
            for consumer, amounts in held.items()
            if amounts.get(parent.uuid) and consumer not in self._assign
        }

    def _held_by(self, consumer: ConsumerShown) -> dict[str, int]:
        return {
            one.provider: one.resources[self._name]
            for one in consumer.allocations
            if self._name in one.resources
        }

    def _assigned(self, evidence: Evidence, held: Amounts) -> Amounts:
        """Return where the units that consumers hold of the parent go, by the evidence.

        What they hold of the children already, by an earlier plan, does not move again.
        """
        assigned = {}
        for consumer, by_child in evidence.holdings.items():
            seen = {
                self._uuids[child]: amounts[self._name]
                for child, amounts in by_child.items()
                if self._name in amounts
            }
            if not seen:
                continue
            own = held.get(consumer, {})
            left = {
                uuid: units - (0 if uuid == self._parent.uuid else own.get(uuid, 0))
                for uuid, units in seen.items()
            }
            left = {uuid: units for uuid, units in left.items() if units > 0}
            if left or own.get(self._parent.uuid):
                assigned[consumer] = left
        return assigned

    def moves(self, *, fit: bool) -> list[ReshapeMove]:
        """Return a move to each child that gets units or consumers. Raises PlanError."""
        amounts = {
            child: (figures.total or 0) - self._total_before(child)
            for child, figures in self._figures.items()
        }
        for child, missing in self._lacking(amounts, self._pieces(fit=fit)).items():
            amounts[child] -= missing
        moves = []
        for child, amount in amounts.items():
            uuid = self._uuids[child]
            assign = {
                consumer: {uuid: units[uuid]}
                for consumer, units in self._assign.items()
                if uuid in units
            }
            if amount or assign or fit:
                moves.append(self._move(uuid, amount, assign, fit=fit))
        targets = {move.to.provider for move in moves}
        for consumer, units in self._assign.items() if moves else ():
            rest = {uuid: one for uuid, one in units.items() if uuid not in targets}
            if rest or not units:  # units that stay by evidence, or evidence of none
                moves[0].assign.setdefault(consumer, {}).update(rest)
        return moves

    def _move(self, uuid: str, amount: int, assign: Amounts, *, fit: bool) -> ReshapeMove:
        return ReshapeMove(
            from_=ReshapePlace(provider=self._parent.uuid, class_=self._name),
            to=ReshapePlace(provider=uuid, class_=self._name),
            amount=amount,
            assign=assign,
            policy="fit" if fit else "explicit",
        )

    def _total_before(self, child: str) -> int:
        return self._before[child].total if child in self._before else 0

    def _pieces(self, *, fit: bool) -> list[int]:
        """Return units of the inventory that stay, the largest first: one for each consumer.

        With an allocation ratio, consumers share units, so there is one for all of them.
        """
        own = [units.get(self._parent.uuid, 0) for units in self._assign.values()]
        others = () if fit else self.staying.values()
        stay = sorted((one for one in (*others, *own) if one), reverse=True)
        ratio = self._source.allocation_ratio
        return stay if ratio == 1 else [_units_for(sum(stay), ratio)]

    def _lacking(self, amounts: Mapping[str, int], pieces: list[int]) -> dict[str, int]:
        """Return how many units each child lacks until those who stay have moved.

        A piece is taken where most is free, as long as there is enough. Raises PlanError.
        """
        room = {child: min(amounts[child], self._free(child)) for child in amounts}
        lacking = dict.fromkeys(amounts, 0)
        for piece in pieces:
            left = piece
            for child in sorted(room, key=lambda one: -room[one]):
                taken = max(min(left, room[child]), 0)
                lacking[child] += taken
                room[child] -= taken
                left -= taken
            if left:
                raise PlanError(
                    f"{left} of {self._name} are missing for consumers that stay on"
                    f" {self._parent.name}: the evidence leaves too little free"
                )
        return lacking

    def _free(self, child: str) -> int:
        """Return how many units of a child nobody uses once the evidence is followed."""
        figures, before = self._figures[child], self._before.get(child)
        uuid = self._uuids[child]
        used = sum(units.get(uuid, 0) for units in self._assign.values())
        used += before.used if before else 0
        like = before or self._source
        ratio = figures.allocation_ratio or like.allocation_ratio
        return (figures.total or 0) - _reserved(figures, before) - _units_for(used, ratio)


def _check_children(
    parent: ProviderShown, children: Mapping[str, ProviderShown], wanted: Iterable[Child]
) -> None:
    """Raise PlanError: a child exists elsewhere, or with another UUID."""
    for child in wanted:
        there = children.get(child.name)
        if child.name == parent.name:
            raise PlanError(f"{child.name} cannot be a child of itself")
        if there is not None and there.root != parent.root:
            raise PlanError(f"{child.name} exists already, and not in the tree of {parent.name}")
        if there is not None and child.uuid not in (None, there.uuid):
            raise PlanError(f"{child.name} exists already, with the UUID {there.uuid}")


def _check_names(evidence: Evidence, uuids: Mapping[str, str]) -> None:
    """Raise PlanError: a consumer uses a provider that the evidence does not describe."""
    for consumer, by_child in evidence.holdings.items():
        unknown = [name for name in by_child if name not in uuids]
        if unknown:
            raise PlanError(f"consumer {consumer} uses {unknown[0]}, which is none of the children")


def _check_figures(
    parent: ProviderShown,
    name: str,
    figures: Mapping[str, ReshapeFigures],
    before: Mapping[str, InventoryShown],
) -> None:
    """Raise PlanError: units appear or vanish, or nobody reserves what was reserved."""
    source = parent.inventories[name]
    wanted = sum(one.total or 0 for one in figures.values())
    there = source.total + sum(one.total for one in before.values())
    if wanted != there:
        beside = " and those of them that exist have" if before else " has"
        raise PlanError(
            f"the children have {wanted} of {name} in all, but {parent.name}{beside} {there}"
        )
    kept = sum(one.reserved for one in before.values())
    kept += source.reserved if source.reserved < source.total else 0  # else it is residual
    reserved = sum(_reserved(one, before.get(child)) for child, one in figures.items())
    if reserved < kept:
        raise PlanError(
            f"{kept} of {name} are reserved, but the children reserve {reserved}: say in the file"
            " which of them have `reserved`"
        )


def _reserved(figures: ReshapeFigures, before: InventoryShown | None) -> int:
    if figures.reserved is not None:
        return figures.reserved
    return before.reserved if before else 0


def _uuid_of(parent: ProviderShown, children: Mapping[str, ProviderShown], child: Child) -> str:
    """Return the UUID of a child; that of a new one is always the same for the same name."""
    if child.name in children:
        return children[child.name].uuid
    return child.uuid or str(uuid5(UUID(parent.uuid), child.name))


def _traits_of(children: Mapping[str, ProviderShown], child: Child) -> list[str]:
    return children[child.name].traits if child.name in children else []


def _inventories(
    evidence: Evidence, uuids: Mapping[str, str]
) -> dict[str, dict[str, ReshapeFigures | None]]:
    """Return the figures of children that do not follow from the moves: all but the totals."""
    found: dict[str, dict[str, ReshapeFigures | None]] = {}
    for child in evidence.children:
        for name, one in child.figures.items():
            rest = ReshapeFigures(
                reserved=one.reserved,
                min_unit=one.min_unit,
                max_unit=one.max_unit,
                step_size=one.step_size,
                allocation_ratio=one.allocation_ratio,
            )
            if rest != ReshapeFigures():
                found.setdefault(uuids[child.name], {})[name] = rest
    return found


def _units_for(used: int, ratio: float) -> int:
    """Return the least total of which `used` units may be allocated."""
    near = max(ceil(used / ratio) - 1, 0)  # the division rounds
    while near * ratio < used:
        near += 1
    return near
