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
    """As `providers`, with a rest after every block, and whenever some of them are in order.

    The fleet may change between two pieces: each provider is listed as it was at some time in
    between, and once, also if it moves to another tree and with it to another block.
    """
    named = _named(fleet, query)
    applied = fleet.applied
    met: set[ProviderId] = set()
    parts = []
    for found in _found(fleet, query) if named is None else _found_in(fleet, query, named):
        parts.append(_new_in_order(found, met))
        yield
    if named is None and fleet.applied != applied:
        # Some may have moved to where it was looked before.
        for found in _found_in(fleet, query, list(fleet.places)):
            parts.append(_new_in_order(found, met))
            yield
    ordered: list[ProviderRecord] = []
    everything = merge(*parts, key=_creation)
    while some := list(islice(everything, ORDERED)):
        ordered += some
        yield
    return ordered


def _new_in_order(found: list[ProviderRecord], met: set[ProviderId]) -> list[ProviderRecord]:
    """Return those that were not met before, in order, and note them."""
    new = sorted([each for each in found if each.provider.uuid not in met], key=_creation)
    met.update(each.provider.uuid for each in new)
    return new


def _creation(record: ProviderRecord) -> tuple[int, str]:
    provider = record.provider
    return provider.created_at, provider.uuid


def _found(fleet: Fleet, query: ProviderQuery) -> Iterator[list[ProviderRecord]]:
    """Yield all that meet the query block by block, each as it is then."""
    for block in list(fleet.blocks):
        met = _meeting(block, query)
        rows = [] if met is None else np.flatnonzero(met).tolist()
        yield [block.record(row) for row in rows]


def _found_in(
    fleet: Fleet, query: ProviderQuery, named: list[ProviderId]
) -> Iterator[list[ProviderRecord]]:
    """Yield those of some providers that meet the query, at most as many as a block has rows."""
    for first in range(0, len(named), BLOCK_ROWS):
        meeting: dict[Block, Mask | None] = {}
        found = []
        for uuid in named[first : first + BLOCK_ROWS]:
            if uuid not in fleet.places:
                continue
            block, row = fleet.places[uuid]
            if block not in meeting:
                meeting[block] = _meeting(block, query)
            met = meeting[block]
            if met is not None and met[row]:
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


def _meeting(block: Block, query: ProviderQuery) -> Mask | None:
    """Which rows meet all conditions? None: no row, and what is left was not looked at."""
    met: Mask = block.here
    for mask in _masks(block, query):
        if mask is None:
            return None
        met = met & mask
    return met


def _masks(block: Block, query: ProviderQuery) -> Iterator[Mask | None]:
    """Yield which rows meet each condition, first those that most often nobody meets."""
    yield with_traits(block, query.traits)
    yield in_aggregates(block, query.aggregates)
    yield with_resources(block, query.resources)
