"""The plan that gives a resource class another name."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.client.plans.plan_error import PlanError
from moorage.wire.providers import InventoryShown, ProviderShown
from moorage.wire.reshapes import ReshapeFigures, ReshapeMove, ReshapePlace, ReshapePlan


def rename_class_plan(old: str, new: str, providers: Iterable[ProviderShown]) -> ReshapePlan:
    """Return a plan that makes `new` of the inventories and allocations of `old`.

    It names no consumer: all go where the inventory goes, also those that come after this.

    Args:
        old: the class as it is.
        new: the class that replaces it; it must exist when the plan is committed.
        providers: those to consider.

    Raises:
        PlanError: no provider has the class, or one has both.
    """
    having = [one for one in providers if old in one.inventories]
    if old == new:
        raise PlanError(f"{old} has this name already")
    if not having:
        raise PlanError(f"no provider has an inventory of {old}")
    both = [one.name for one in having if new in one.inventories]
    if both:
        raise PlanError(f"{both[0]} has both {old} and {new}: a renaming would mix them")
    return ReshapePlan(
        moves=[whole(one.uuid, old, one.uuid, new) for one in having],
        inventories={
            one.uuid: {new: kept}
            for one in having
            if (kept := reserved(one.inventories[old])) is not None
        },
        fungible=[old],
        cross_tree=len({one.root for one in having}) > 1,
    )


def whole(source: str, class_: str, target: str, new_class: str) -> ReshapeMove:
    """Return the move of a whole inventory with everybody on it; its class must be fungible."""
    return ReshapeMove(
        from_=ReshapePlace(provider=source, class_=class_),
        to=ReshapePlace(provider=target, class_=new_class),
        policy="fit",
    )


def reserved(inventory: InventoryShown) -> ReshapeFigures | None:
    """Return the figures that a move does not take along; None: there are none."""
    return ReshapeFigures(reserved=inventory.reserved) if inventory.reserved else None
