"""The listing of providers: those that meet every condition by themselves."""

from collections.abc import Iterator
from heapq import merge
from itertools import islice

import numpy as np

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import ProviderQuery
from moorage.core.ledger.search.block import BLOCK_ROWS, Block
from moorage.core.ledger.search.columns import Mask
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.groups import in_aggregates, with_resources, with_traits
from moorage.core.ledger.search.steps import Steps, to_end

ORDERED = 256
"""Providers that are put in order in one go."""


def providers(fleet: Fleet, query: ProviderQuery) -> list[ProviderRecord]:
    """Return all providers that meet the query, in the order of their creation.

    A condition that names something unknown is met by nobody.
    """
    return to_end(providers_in_order(fleet, query))


def providers_in_order(fleet: Fleet, query: ProviderQuery) -> Steps[list[ProviderRecord]]:
    """As `providers`, with a rest after every block, and whenever some of them are in order."""
    parts = []
    for found in _found(fleet, query):
        parts.append(sorted([(*_creation(record), record) for record in found]))
        yield
    ordered: list[ProviderRecord] = []
    everything = merge(*parts)
    while some := list(islice(everything, ORDERED)):
        ordered += [record for *_, record in some]
        yield
    return ordered


def _creation(record: ProviderRecord) -> tuple[int, str]:
    provider = record.provider
    return provider.created_at, provider.uuid


def _found(fleet: Fleet, query: ProviderQuery) -> Iterator[list[ProviderRecord]]:
    """Yield those that meet the query, each as it is then: at most as many as a block has rows."""
    named = _named(fleet, query)
    if named is None:
        for block in list(fleet.blocks):
            rows = np.flatnonzero(_meeting(block, query)).tolist()
            yield [block.record(row) for row in rows]
        return
    met: dict[Block, Mask] = {}
    for first in range(0, len(named), BLOCK_ROWS):
        found = []
        for uuid in named[first : first + BLOCK_ROWS]:
            if uuid not in fleet.places:
                continue
            block, row = fleet.places[uuid]
            if block not in met:
                met[block] = _meeting(block, query)
            if met[block][row]:
                found.append(block.record(row))
        yield found


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
