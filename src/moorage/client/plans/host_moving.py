"""The plan that gives a host another UUID or name, or puts another provider in its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from moorage.client.plans.class_renaming import reserved, whole
from moorage.client.plans.plan_error import PlanError
from moorage.client.plans.trees import below
from moorage.wire.providers import ProviderShown
from moorage.wire.reshapes import ReshapeFigures, ReshapePlan, ReshapeProvider

DRAINED = "drained"
"""What an operator has drained is withheld for a reason that begins so."""


def rename_host_plan(
    old: ProviderShown, name: str, providers: Sequence[ProviderShown]
) -> ReshapePlan:
    """Return a plan that renames a host, and all below it whose names begin with its name.

    Raises PlanError: it has this name already.
    """
    if name == old.name:
        raise PlanError(f"{old.name} has this name already")
    return ReshapePlan(rename={old.uuid: name, **_renamed(old, name, providers)})


def new_host_plan(
    old: ProviderShown, uuid: str, name: str | None, providers: Sequence[ProviderShown]
) -> ReshapePlan:
    """Return a plan that gives a host another UUID: a new provider gets all, the old one goes.

    Args:
        old: the host as it is.
        uuid: of the new provider.
        name: of the new provider; None: as now.
        providers: those of the tree.
    """
    name = name or old.name
    plan = _moved(old, uuid, providers)
    return replace(
        plan,
        create=[ReshapeProvider(uuid=uuid, name=name, parent=old.parent)],
        rename=_renamed(old, name, providers),
        moves=[whole(old.uuid, one, uuid, one) for one in sorted(old.inventories)],
        inventories=_reserved(old, uuid, old.inventories),
        traits={uuid: sorted(old.traits)} if old.traits else {},
        aggregates={uuid: sorted(old.aggregates)} if old.aggregates else {},
        drain=_drained(old, uuid, old.parent, providers),
    )


def replaced_host_plan(
    old: ProviderShown, new: ProviderShown, name: str | None, providers: Sequence[ProviderShown]
) -> ReshapePlan:
    """Return a plan that puts a provider that exists in the place of another one, which goes.

    The inventories of the new one stay as they are: somebody has reported them. It gets those that
    it lacks, all allocations and children, and traits and aggregates in addition. If the old one
    is drained, so is the new one.

    Args:
        old: the host that goes.
        new: the host that stays, or has come already.
        name: of the new one in the end; None: as now.
        providers: those of both trees.

    Raises:
        PlanError: both are the same, or one is below the other.
    """
    if old.uuid == new.uuid:
        raise PlanError(f"{old.name} cannot take its own place")
    for one, other in ((old, new), (new, old)):
        if one.uuid in [each.uuid for each in below(other, providers)]:
            raise PlanError(f"{one.name} is below {other.name}, so neither can replace the other")
    lacking = sorted(old.inventories.keys() - new.inventories.keys())
    traits = sorted({*old.traits, *new.traits})
    aggregates = sorted({*old.aggregates, *new.aggregates})
    name = name or new.name
    rename = {} if name == new.name else {new.uuid: name, **_renamed(new, name, providers)}
    return replace(
        _moved(old, new.uuid, providers),
        rename={**rename, **_renamed(old, name, providers)},
        moves=[
            move if move.to.class_ in lacking else replace(move, amount=0)
            for move in (whole(old.uuid, one, new.uuid, one) for one in sorted(old.inventories))
        ],
        inventories=_reserved(old, new.uuid, lacking),
        traits={new.uuid: traits} if traits != sorted(new.traits) else {},
        aggregates={new.uuid: aggregates} if aggregates != sorted(new.aggregates) else {},
        cross_tree=old.root != new.root,
        drain=_drained(old, new.uuid, new.parent, providers),
    )


def _moved(old: ProviderShown, uuid: str, providers: Sequence[ProviderShown]) -> ReshapePlan:
    """Return the part that all successors have in common."""
    return ReshapePlan(
        parents={one.uuid: uuid for one in providers if one.parent == old.uuid},
        delete=[old.uuid],
        fungible=sorted(old.inventories),
    )


def _drained(
    old: ProviderShown, uuid: str, parent: str | None, providers: Sequence[ProviderShown]
) -> dict[str, str]:
    """Return the drain of a successor: nothing new lands on it if nothing may land on the host.

    None is needed below a parent that is withheld itself: what is below it is, too.
    """
    state, _, words = (old.withheld or "").partition(": ")
    closed = any(one.uuid == parent and one.withheld is not None for one in providers)
    return {uuid: words} if state == DRAINED and not closed else {}


def _reserved(
    old: ProviderShown, uuid: str, classes: Iterable[str]
) -> dict[str, dict[str, ReshapeFigures | None]]:
    figures: dict[str, ReshapeFigures | None] = {}
    for one in sorted(classes):
        kept = reserved(old.inventories[one])
        if kept is not None:
            figures[one] = kept
    return {uuid: figures} if figures else {}


def _renamed(top: ProviderShown, name: str, providers: Sequence[ProviderShown]) -> dict[str, str]:
    """Return new names for what is below a host and named after it, such as `HOST_gpu0`."""
    if name == top.name:
        return {}
    return {
        one.uuid: name + one.name[len(top.name) :]
        for one in below(top, providers)
        if one.name.startswith(top.name) and not one.name[len(top.name) :][:1].isalnum()
    }
