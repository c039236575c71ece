"""The listing of providers: those that meet every condition themselves."""

from collections.abc import Iterator
from heapq import merge
from itertools import islice

import numpy as np

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import ProviderQuery
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.catalog.chunk import CHUNK_ROWS, Chunk
from moorage.core.ledger.search.catalog.columns import Mask
from moorage.core.ledger.search.groups import in_aggregates, with_resources, with_traits
from moorage.core.ledger.search.steps import Steps

ORDERED = 256
"""Providers that are sorted in one piece."""


def providers_in_order(catalog: Catalog, query: ProviderQuery) -> Steps[list[ProviderRecord]]:
    """Return all providers that meet the query, in the order of their creation.

    No provider meets a condition with an unknown name. There is a pause after every chunk and after
    every sorted piece. The catalog may change between two pieces: each provider is listed as it was
    at some time during the search, and only once, even if it moves to another tree and chunk.
    """
    named = _named(catalog, query)
    applied = catalog.applied
    met: set[ProviderId] = set()
    parts = []
    for found in _found(catalog, query) if named is None else _found_in(catalog, query, named):
        parts.append(_new_in_order(found, met))
        yield
    if named is None and catalog.applied != applied:
        # Some may have moved to chunks that were already searched.
        for found in _found_in(catalog, query, list(catalog.places)):
            parts.append(_new_in_order(found, met))
            yield
    ordered: list[ProviderRecord] = []
    everything = merge(*parts, key=_creation)
    while some := list(islice(everything, ORDERED)):
        ordered += some
        yield
    return ordered


def _new_in_order(found: list[ProviderRecord], met: set[ProviderId]) -> list[ProviderRecord]:
    """Return those that are not in `met`, sorted, and add them to it."""
    new = sorted([each for each in found if each.provider.uuid not in met], key=_creation)
    met.update(each.provider.uuid for each in new)
    return new


def _creation(record: ProviderRecord) -> tuple[int, str]:
    provider = record.provider
    return provider.created_at, provider.uuid


def _found(catalog: Catalog, query: ProviderQuery) -> Iterator[list[ProviderRecord]]:
    """Yield all providers that meet the query, chunk by chunk, each as of that time."""
    for chunk in list(catalog.chunks):
        met = _meeting(chunk, query)
        rows = [] if met is None else np.flatnonzero(met).tolist()
        yield [chunk.record(row) for row in rows]


def _found_in(
    catalog: Catalog, query: ProviderQuery, named: list[ProviderId]
) -> Iterator[list[ProviderRecord]]:
    """Yield those of these providers that meet the query, at most `CHUNK_ROWS` at a time."""
    for first in range(0, len(named), CHUNK_ROWS):
        meeting: dict[Chunk, Mask | None] = {}
        found = []
        for uuid in named[first : first + CHUNK_ROWS]:
            if uuid not in catalog.places:
                continue
            chunk, row = catalog.places[uuid]
            if chunk not in meeting:
                meeting[chunk] = _meeting(chunk, query)
            met = meeting[chunk]
            if met is not None and met[row]:
                found.append(chunk.record(row))
        yield found


def _named(catalog: Catalog, query: ProviderQuery) -> list[ProviderId] | None:
    """Return the few providers that the query itself identifies; None: it identifies none."""
    found: list[ProviderId] | None = None
    if query.in_tree is not None:
        found = catalog.tree_of(query.in_tree)
    if query.uuid is not None:
        found = [query.uuid] if found is None or query.uuid in found else []
    if query.name is not None:
        uuid = catalog.named(query.name)
        found = [uuid] if uuid is not None and (found is None or uuid in found) else []
    return found


def _meeting(chunk: Chunk, query: ProviderQuery) -> Mask | None:
    """Which rows meet all conditions? None: no row; later conditions were not tested."""
    met: Mask = chunk.here
    for mask in _masks(chunk, query):
        if mask is None:
            return None
        met = met & mask
    return met


def _masks(chunk: Chunk, query: ProviderQuery) -> Iterator[Mask | None]:
    """Yield the rows that meet each condition, the most selective conditions first."""
    yield with_traits(chunk, query.traits)
    yield in_aggregates(chunk, query.aggregates)
    yield with_resources(chunk, query.resources)
