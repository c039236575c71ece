"""The listing of providers: those that meet every condition by themselves."""

import numpy as np

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import ProviderQuery
from moorage.core.ledger.search.block import Block
from moorage.core.ledger.search.columns import Mask
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.groups import in_aggregates, with_resources, with_traits


def providers(fleet: Fleet, query: ProviderQuery) -> list[ProviderRecord]:
    """Return all providers that meet the query, in the order of their creation.

    A condition that names something unknown is met by nobody.
    """
    return sorted(_found(fleet, query), key=_creation)


def _creation(record: ProviderRecord) -> tuple[int, str]:
    provider = record.provider
    return provider.created_at, provider.uuid


def _found(fleet: Fleet, query: ProviderQuery) -> list[ProviderRecord]:
    named = _named(fleet, query)
    if named is None:
        return [
            block.record(row)
            for block in fleet.blocks
            for row in np.flatnonzero(_meeting(block, query)).tolist()
        ]
    places = [fleet.places[uuid] for uuid in named if uuid in fleet.places]
    met = {block: _meeting(block, query) for block, _ in places}
    return [block.record(row) for block, row in places if met[block][row]]


def _named(fleet: Fleet, query: ProviderQuery) -> list[ProviderId] | None:
    """Return the few providers that the query itself points to; None: it points to none."""
    found: list[ProviderId] | None = None
    if query.in_tree is not None:
        found = fleet.tree_of(query.in_tree)
    if query.uuid is not None:
        found = [query.uuid] if found is None or query.uuid in found else []
    if query.name is not None:
        uuid = fleet.named(query.name)
        found = [uuid] if uuid is not None and (found is None or uuid in found) else []
    return found


def _meeting(block: Block, query: ProviderQuery) -> Mask:
    """Which rows meet the conditions on resources, traits and aggregates?"""
    met = block.here
    for mask in (
        with_resources(block, query.resources),
        with_traits(block, query.traits),
        in_aggregates(block, query.aggregates),
    ):
        met = met & mask if mask is not None else np.zeros_like(met)
    return met
