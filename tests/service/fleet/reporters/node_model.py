"""What reports and writes of the Placement API make of a node, in other words than the code's."""

from dataclasses import dataclass, field, replace

from moorage.core.ids import AggregateId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.reported import Mode, Node

NOVA = "OWNER_NOVA"

Figures = tuple[int, int, float]
"""Total, reserved, ratio."""


@dataclass(frozen=True)
class Model:
    """What a node is in the ledger: whose traits, which figures."""

    name: str
    inventories: dict[str, Figures] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    claims: dict[str, frozenset[str]] = field(default_factory=dict)
    """Traits by the group that has set them."""
    aggregates: frozenset[AggregateId] = frozenset()
    ghosts: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()


def is_foreign(was: Model | None, group: str, mode: Mode) -> bool:
    """Return whether only other groups can say that a node is gone."""
    if was is None or mode is Mode.BESIDE_NOVA or NOVA in was.traits:
        return False
    return bool(was.owners) and group not in was.owners


def after_absent(was: Model | None, node: Node, group: str, mode: Mode) -> Model | None:
    """Return what a report of `absent` makes of a node."""
    if was is None:
        return None
    if mode is Mode.OWNER and NOVA not in was.traits and not any(was.used.values()):
        return None
    closed = {name: (one[0], one[0], one[2]) for name, one in was.inventories.items()}
    return replace(was, inventories=closed, ghosts=was.ghosts | {group})


def after_present(was: Model | None, node: Node, group: str, mode: Mode) -> Model | None:
    """Return what a report of a present node makes of it, if it is not refused."""
    wanted = {
        name: (one.total, one.reserved, one.allocation_ratio)
        for name, one in (node.inventories or {}).items()
    }
    if mode is Mode.BESIDE_NOVA or (was is not None and NOVA in was.traits):
        if was is None:
            return None
        both = {
            name: (wanted[name][0], wanted[name][1], one[2]) if name in wanted else one
            for name, one in was.inventories.items()
        }
        return replace(was, inventories=both, ghosts=was.ghosts - {group})
    was = was or Model(name="")
    now = replace(was, ghosts=was.ghosts - {group}, owners=was.owners | {group})
    if node.name is not None:
        now = replace(now, name=node.name)
    if node.inventories is not None:
        now = replace(now, inventories=wanted)
    if node.aggregates is not None:
        now = replace(now, aggregates=node.aggregates)
    if node.traits is not None:
        claimed = frozenset[str]().union(*was.claims.values())
        own = node.traits - (was.traits - claimed)
        others = frozenset[str]().union(*(c for g, c in was.claims.items() if g != group))
        kept = (was.traits - claimed) | others
        now = replace(now, traits=kept | own, claims={**was.claims, group: own})
    return now


def raised(was: Model | None, now: Model) -> int:
    """Return by how much the generation rises: once for each part that differs."""
    old = was or Model(name="")
    parts = ("inventories", "traits", "aggregates")
    return sum(getattr(old, part) != getattr(now, part) for part in parts)


def shown(record: ProviderRecord | None) -> Model | None:
    """Return what the index says of a node."""
    if record is None:
        return None
    tags = record.tags
    return Model(
        record.provider.name,
        {n: (i.total, i.reserved, i.allocation_ratio) for n, i in record.inventories.items()},
        {n: i.used for n, i in record.inventories.items() if i.used},
        tags.traits,
        {one.group: one.traits for one in tags.reported if one.traits},
        tags.aggregates,
        frozenset(one.group for one in tags.reported if one.ghost),
        frozenset(one.group for one in tags.reported if one.owned),
    )


def tidy(model: Model | None) -> Model | None:
    """Return the model without empty members."""
    if model is None:
        return None
    claims = {group: claimed for group, claimed in model.claims.items() if claimed}
    used = {name: amount for name, amount in model.used.items() if amount}
    return replace(model, claims=claims, used=used)
