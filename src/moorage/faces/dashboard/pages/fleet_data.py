"""Serves the map of the fleet: made once for all readers, as often as a share of a core allows."""

import asyncio
import gzip
from collections import OrderedDict
from collections.abc import Iterable
from http import HTTPStatus
from time import perf_counter
from typing import NamedTuple
from weakref import WeakKeyDictionary

from moorage.core.fleet.model import Agent, State
from moorage.core.ids import ProviderId
from moorage.core.ledger.search.capacity_sums import snapshot
from moorage.faces.dashboard.pages.fleet_map import GROUPINGS, Grouping, drawn, encoded
from moorage.faces.dashboard.pages.one_revision import as_of
from moorage.faces.dashboard.routing import Answer, PageRequest
from moorage.faces.native_api import RefusedError
from moorage.service.app import Service
from moorage.service.feed.catalog_index import CatalogIndex
from moorage.wire.operations import ledger

NEEDS = ledger.LIST_PROVIDERS
"""The operation that a reader must be permitted to call: the map shows what it lists."""

SHARE_MAX = 0.05
"""The share of a core that all maps may use: the longer one takes, the older it may be."""

MAPS_MAX = 8
"""Maps that are kept, by grouping and class."""

JSON = "application/json"


class Made(NamedTuple):
    """A finished map, as it is sent."""

    as_of: str
    columns: Answer
    names: Answer
    until: float
    """Until when it serves readers although something has changed since."""


Key = tuple[Grouping, str | None]


class Maps:
    """The maps of one service."""

    def __init__(self) -> None:
        self._made: OrderedDict[Key, asyncio.Task[Made]] = OrderedDict()

    async def current(self, service: Service, key: Key) -> Made:
        """Return the map; readers who ask at the same time share one."""
        task = self._made.get(key)
        if task is not None and task.done() and not await self._serves(service, task):
            newer = self._made.get(key)
            task = None if newer is task else newer
        if task is None:
            task = asyncio.ensure_future(_make(service, key, SHARE_MAX / (1 + self._busy())))
        self._made[key] = task  # others may have pushed it out
        self._made.move_to_end(key)
        while len(self._made) > MAPS_MAX:
            self._made.popitem(last=False)
        return await asyncio.shield(task)

    def _busy(self) -> int:
        """Return how many maps are being made, or were made a moment ago."""
        now = perf_counter()
        done = [task for task in self._made.values() if task.done()]
        fresh = [task for task in done if _succeeded(task) and now < task.result().until]
        return len(self._made) - len(done) + len(fresh)

    async def _serves(self, service: Service, task: asyncio.Task[Made]) -> bool:
        if not _succeeded(task):
            return False
        made = task.result()
        if perf_counter() < made.until:
            return True
        await service.index.current()
        return made.as_of == as_of(service)


def _succeeded(task: asyncio.Task[Made]) -> bool:
    return not task.cancelled() and task.exception() is None


_MAPS: WeakKeyDictionary[CatalogIndex, Maps] = WeakKeyDictionary()
"""The maps of each service of this process: they end with it."""


async def columns(request: PageRequest) -> Answer:
    """Return the columns; if the reader has those of this revision already, only the revision."""
    made = await _asked(request)
    if request.query.get("have") == made.as_of:
        return Answer(encoded({"as_of": made.as_of}), JSON)
    return made.columns


async def names(request: PageRequest) -> Answer:
    """Return names and UUIDs in the order of the columns."""
    return (await _asked(request)).names


async def _asked(request: PageRequest) -> Made:
    """Return the map that the address asks for. Raises RefusedError."""
    if not request.permits(NEEDS):
        raise RefusedError(
            HTTPStatus.FORBIDDEN, "forbidden", "The map needs a token with more rights."
        )
    by, name = grouping_of(request), request.query.get("class") or None
    if name is not None and not request.service.index.catalog.has_class(name):
        raise RefusedError(HTTPStatus.NOT_FOUND, "not_found", "There is no such resource class.")
    maps = _MAPS.get(request.service.index)
    if maps is None:
        maps = _MAPS[request.service.index] = Maps()
    return await maps.current(request.service, (by, name))


def grouping_of(request: PageRequest) -> Grouping:
    """Return how the reader wants the map grouped. Raises RefusedError: there is no such way."""
    asked = request.query.get("group", GROUPINGS[0])
    for by in GROUPINGS:
        if by == asked:
            return by
    raise RefusedError(
        HTTPStatus.BAD_REQUEST, "invalid", f"group must be one of {', '.join(GROUPINGS)}."
    )


async def _make(service: Service, key: Key, share: float) -> Made:
    catalog = await service.index.current()
    # The event loop does not run in between, so all is as of the same revision.
    records = snapshot(catalog)
    agents = _by_root(service.fleet.directory.agents())
    revision = as_of(service)
    begun = perf_counter()
    shown, named = await service.searches.reading(drawn(records, agents, revision, *key))
    made = await asyncio.to_thread(lambda: (_answer(encoded(shown)), _answer(encoded(named))))
    spent = perf_counter() - begun
    return Made(revision, *made, perf_counter() + spent / share)


def _by_root(agents: Iterable[Agent]) -> dict[ProviderId, Agent]:
    """Return the agent of each machine: a former one only if there is no other."""
    found: dict[ProviderId, Agent] = {}
    for agent in agents:
        if agent.root is not None and (agent.root not in found or agent.state is State.ACTIVE):
            found[agent.root] = agent
    return found


def _answer(body: bytes) -> Answer:
    return Answer(body, JSON, compressed=gzip.compress(body, 1, mtime=0))
