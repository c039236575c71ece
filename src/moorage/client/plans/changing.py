"""Plans that change a few values of a provider, or release a consumer; what one has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moorage.client.plans.plan_error import PlanError
from moorage.wire.providers import ProviderShown
from moorage.wire.reshapes import ReshapeEffect, ReshapeFigures, ReshapePlan


@dataclass(frozen=True)
class Change:
    """What is to be changed; what is not named stays. Figures are by resource class."""

    name: str | None = None
    total: Mapping[str, int] = field(default_factory=dict)
    reserved: Mapping[str, int] = field(default_factory=dict)
    ratio: Mapping[str, float] = field(default_factory=dict)
    traits_added: Sequence[str] = ()
    traits_removed: Sequence[str] = ()
    aggregates_added: Sequence[str] = ()
    aggregates_removed: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Return whether there is anything to change."""
        return any(vars(self).values())


def change_plan(one: ProviderShown, change: Change) -> ReshapePlan:
    """Return the plan that changes a provider. Raises PlanError: an agent manages what it names."""
    classes = sorted({*change.total, *change.reserved, *change.ratio})
    for name in classes:
        held = one.inventories.get(name)
        if held is None and name not in change.total:
            raise PlanError(f"provider {one.name} has no inventory of {name}")
        managed = one.agent is not None and (held is None or held.offered is not None)
        if managed and name in change.total:
            raise PlanError(
                f"agent {one.agent} manages the total of {name} of provider {one.name}: use"
                f" 'moorage agent set-desired {one.agent} {name}'"
            )
    figures = {
        name: ReshapeFigures(
            total=change.total.get(name),
            reserved=change.reserved.get(name),
            allocation_ratio=change.ratio.get(name),
        )
        for name in classes
    }
    traits = ({*one.traits} | {*change.traits_added}) - {*change.traits_removed}
    aggregates = ({*one.aggregates} | {*change.aggregates_added}) - {*change.aggregates_removed}
    return ReshapePlan(
        rename={} if change.name in (None, one.name) else {one.uuid: str(change.name)},
        inventories={one.uuid: {**figures}} if figures else {},
        traits={} if traits == {*one.traits} else {one.uuid: sorted(traits)},
        aggregates={} if aggregates == {*one.aggregates} else {one.uuid: sorted(aggregates)},
    )


def is_of(effects: Sequence[ReshapeEffect], one: ProviderShown) -> bool:
    """Return whether effects begin with the traits and aggregates that a provider was seen with.

    A plan has all of them, so it would drop those that somebody else has added since.
    """
    seen = {"traits_set": one.traits, "aggregates_set": one.aggregates}
    return all(
        sorted(effect.before or ()) == sorted(seen[effect.kind])
        for effect in effects
        if effect.kind in seen
    )


def changes_of(effects: Sequence[ReshapeEffect]) -> Iterator[str]:
    """Yield what effects change, such as `VCPU allocation_ratio 1 -> 4` and `trait +CUSTOM_A`."""
    for one in effects:
        if one.kind == "inventory_set":
            yield from _figures(one)
        elif one.kind in ("traits_set", "aggregates_set"):
            word = one.kind.partition("s_")[0]
            before, after = {*(one.before or ())}, {*(one.after or ())}
            yield from (f"{word} +{each}" for each in sorted(after - before))
            yield from (f"{word} -{each}" for each in sorted(before - after))
        else:
            what = one.kind.replace("provider_", "").replace("_", " ")
            yield f"{what} {_text(one.before)} -> {_text(one.after)}"


def _figures(effect: ReshapeEffect) -> Iterator[str]:
    before, after = effect.before or {}, effect.after or {}
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield f"{effect.class_} {name} {_text(before.get(name))} -> {_text(after.get(name))}"


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
