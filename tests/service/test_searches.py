"""Searches take turns, continue where the last one ended, and record incomplete answers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import Inventory, Provider
from moorage.core.ledger.requests import CandidateAnswer, CandidateQuery
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.steps import Steps
from moorage.core.service_time import Moment, When
from moorage.service import searches as module
from moorage.service.fair_turns import FairTurns
from moorage.service.feed.catalog_index import CatalogIndex
from moorage.service.feed.followers import RoomFollowers
from moorage.service.feed.peer_changes import PeerChanges
from moorage.service.searches import ClientGoneError, Searches
from moorage.store.open import open_engine
from tests.core.ledger.search.builder import Builder, group
from tests.service.searching import Endless, never, next_round


def fleet_of(hosts: int, ports: int) -> Catalog:
    """Return hosts with one-unit ports."""
    builder = Builder()
    for host in range(hosts):
        builder.add(f"host{host}")
        for port in range(ports):
            builder.add(f"host{host}p{port}", f"host{host}", NIC=1)
    return builder.catalog


def isolated(groups: int, limit: int | None = None) -> CandidateQuery:
    """Return a query for `groups` ports, each of a different provider."""
    asked = tuple(group(f"_{number}", NIC=1) for number in range(groups))
    return CandidateQuery(asked, group_policy="isolate", limit=limit)


Ask = Callable[..., CandidateAnswer]


@pytest.fixture
def ask() -> Iterator[Ask]:
    """A function that runs searches one after another in one event loop."""
    with asyncio.Runner() as runner:

        def asked(
            searches: Searches, catalog: Catalog, query: CandidateQuery, words: bytes = b"q"
        ) -> CandidateAnswer:
            return runner.run(searches.driven(searches.candidates(catalog, query, words), never))

        yield asked


def always(number: int) -> Callable[[int], int]:
    """Return a source of chance that always yields `number`."""
    return lambda _: number


def hosts_of(answer: CandidateAnswer) -> set[str]:
    """Return the hosts of the candidates."""
    return {each.partition("p")[0] for c in answer.candidates for each in c.allocations}


def test_the_same_query_continues_where_it_ended(ask: Ask) -> None:
    """Ten answers of four hosts each offer all forty; other queries do not interfere."""
    searches, catalog = Searches(FairTurns()), fleet_of(40, 3)
    seen: set[str] = set()
    for number in range(10):
        seen |= hosts_of(ask(searches, catalog, isolated(2, limit=4)))
        ask(searches, catalog, isolated(1, limit=number + 1), b"another")
    assert len(seen) == 40


def test_the_first_search_begins_at_a_random_host(ask: Ask) -> None:
    """Processes with different random numbers begin at different hosts."""
    catalog = fleet_of(40, 3)
    turns = FairTurns()
    first: set[str] = set()
    for number in range(40):
        searches = Searches(turns, chance=always(number))
        first |= hosts_of(ask(searches, catalog, isolated(2, limit=1)))
    assert len(first) == 40


def test_remembered_queries_are_bounded(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many different queries only the last ones continue where they ended."""
    monkeypatch.setattr(module, "STARTS_MAX", 3)
    searches, catalog = Searches(FairTurns()), fleet_of(4, 1)
    for number in range(10):
        ask(searches, catalog, isolated(1, limit=1), b"%d" % number)
    assert len(searches._starts) == 3


def test_a_search_that_finds_nothing_in_its_steps_is_refused(
    ask: Ask,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is counted, logged once for several refusals, and the next search continues after it."""
    catalog = fleet_of(40, 3)
    begun: list[int] = []

    def chance(bits: int) -> int:
        begun.append(bits)
        return 0

    searches = Searches(FairTurns(), steps_max=1, chance=chance)
    for _ in range(5):
        with pytest.raises(Error) as refusal:
            ask(searches, catalog, isolated(2))
        assert refusal.value.code is Code.SEARCH_INCOMPLETE
    assert searches.counters.given_up == 5
    lines = [each.getMessage() for each in caplog.records if each.name == "moorage.searches"]
    assert len(lines) == 1 and "b'q'" in lines[0]
    assert len(begun) == 2, "only the first search began at random"


def test_incomplete_answers_are_counted(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    """What was found within the steps is returned; reaching the cap is logged, a limit is not."""
    catalog = fleet_of(40, 3)
    turns = FairTurns()
    cut = Searches(turns, steps_max=500)
    assert 0 < len(ask(cut, catalog, isolated(2)).candidates) < 240
    assert (cut.counters.cut, cut.counters.given_up, cut.counters.capped) == (1, 0, 0)
    capped = Searches(turns, candidates_max=100)
    assert len(ask(capped, catalog, isolated(2)).candidates) == 100
    assert len(ask(capped, catalog, isolated(2, limit=100)).candidates) == 100
    assert len(ask(capped, catalog, isolated(1)).candidates) == 100
    assert len(ask(capped, catalog, isolated(1, limit=7)).candidates) == 7
    assert (capped.counters.cut, capped.counters.capped) == (0, 2)
    assert sum("candidates_max" in each.getMessage() for each in caplog.records) == 1
    whole = Searches(turns, candidates_max=120)
    assert len(ask(whole, catalog, isolated(1)).candidates) == 120
    assert whole.counters.capped == 0, "there were no more candidates"


def test_a_search_stops_when_its_client_goes_away() -> None:
    """A long search is closed when its client leaves, and the next long one is executed."""

    async def run() -> None:
        searches, left = Searches(FairTurns()), asyncio.Event()

        async def gone() -> None:
            await left.wait()

        endless = Endless()
        task = asyncio.create_task(searches.driven(endless.work(), gone))
        while not searches.waiting:
            await next_round()
        left.set()
        with pytest.raises(ClientGoneError):
            await task
        assert endless.closed and endless.steps > 1 and searches.waiting == 0
        catalog = fleet_of(30, 6)
        answer = await searches.driven(searches.candidates(catalog, isolated(3), b"q"), never)
        assert len(answer.candidates) == 30 * 120

    asyncio.run(run())


HOSTS = 600


@asynccontextmanager
async def reshaped(folder: Path) -> AsyncIterator[tuple[CatalogIndex, FairTurns, Changes]]:
    """Provide an index of hosts with a NIC each, and a batch that moves all NICs to children."""
    now = Instant(0)

    def made(uuid: str, parent: str | None = None) -> Provider:
        above = None if parent is None else ProviderId(parent)
        return Provider(ProviderId(uuid), uuid, 0, above, above or ProviderId(uuid), now, now)

    turns = FairTurns()
    engine = open_engine(f"sqlite:///{folder / 'ledger.sqlite'}")
    when = When(Moment(now, now), now)
    feed = PeerChanges(engine, RoomFollowers(), lambda _: when)
    index = CatalogIndex(engine, feed, frozenset({"NIC"}), frozenset(), turns)
    await index.load()
    before, after = Changes(), Changes()
    for host in [f"host{number}" for number in range(HOSTS)]:
        one, port = made(host), made(host + "p", host)
        before.providers.update({one.uuid: one, port.uuid: port})
        before.inventories[one.uuid, "NIC"] = Inventory(1)
        after.inventories[one.uuid, "NIC"] = None
    for uuid in before.providers:
        if uuid.endswith("p"):
            after.inventories[uuid, "NIC"] = Inventory(1)
    await index.apply(before)
    yield index, turns, after
    await engine.close()


def test_no_search_sees_half_of_a_large_batch(tmp_path: Path) -> None:
    """What fits before and after a batch is found, though searches and batch run in pieces."""

    async def run() -> None:
        async with reshaped(tmp_path) as (index, turns, batch):
            searches = Searches(turns, whole=index.whole)
            work = [searches.candidates(index.catalog, isolated(1), b"%d" % n) for n in range(8)]
            driven = [asyncio.create_task(searches.driven(each, never)) for each in work]
            await next_round()
            await index.apply(batch)
            assert {len(each.candidates) for each in await asyncio.gather(*driven)} == {HOSTS}

    asyncio.run(run())


@pytest.mark.parametrize("careless", [False, True])
def test_no_reader_sees_half_of_a_large_batch(tmp_path: Path, careless: bool) -> None:
    """Listings and explanations see whole batches; a control that only takes turns does not."""

    def counting(catalog: Catalog) -> Steps[set[int]]:
        seen: set[int] = set()
        for _ in range(200):
            records = [catalog.record(uuid) for uuid in catalog.places]
            seen.add(sum("NIC" in each.inventories for each in records if each is not None))
            yield
        return seen

    async def run() -> None:
        async with reshaped(tmp_path) as (index, turns, batch):
            driver = turns.driven if careless else Searches(turns, whole=index.whole).reading
            reader = asyncio.create_task(driver(counting(index.catalog)))
            await next_round()
            await index.apply(batch)
            assert (await reader == {HOSTS}) is not careless

    asyncio.run(run())


def test_long_searches_take_turns() -> None:
    """A long search is answered while others, fewer than `ABREAST_MAX`, never end."""

    async def run() -> None:
        searches = Searches(FairTurns())
        endless = [Endless() for _ in range(module.ABREAST_MAX - 1)]
        tasks = [asyncio.create_task(searches.driven(e.work(), never)) for e in endless]
        while searches.waiting < len(tasks):
            await next_round()
        catalog = fleet_of(30, 6)
        work = searches.candidates(catalog, isolated(3), b"q")
        answer = await asyncio.wait_for(searches.driven(work, never), 30)
        assert len(answer.candidates) == 30 * 120
        steps = [each.steps for each in endless]
        while any(each.steps == before for each, before in zip(endless, steps, strict=True)):
            await next_round()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert searches.waiting == 0

    asyncio.run(run())


def test_few_long_searches_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further long searches wait, short ones do not; beyond `LONG_MAX` they are refused."""
    monkeypatch.setattr(module, "LONG_MAX", 3)
    monkeypatch.setattr(module, "ABREAST_MAX", 2)

    async def run() -> None:
        searches = Searches(FairTurns())
        endless = [Endless() for _ in range(3)]
        tasks = [asyncio.create_task(searches.driven(e.work(), never)) for e in endless]
        while searches.waiting < 3:
            await next_round()
        stopped = [each.steps for each in endless]
        catalog = fleet_of(3, 2)
        assert (
            await searches.driven(searches.candidates(catalog, isolated(1), b"q"), never)
        ).candidates
        with pytest.raises(Error) as refusal:
            await searches.driven(Endless().work(), never)
        assert refusal.value.code is Code.OVERLOADED
        moved = [each.steps > before for each, before in zip(endless, stopped, strict=True)]
        assert 1 <= sum(moved) <= 2 and endless[2].steps == stopped[2], "the third did not wait"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert all(each.closed for each in endless) and searches.waiting == 0

    asyncio.run(run())


def test_a_search_does_not_block_the_loop() -> None:
    """Between the pieces of a search, other tasks of the event loop run."""

    async def run() -> None:
        searches, rounds, done = Searches(FairTurns()), 0, False

        async def others() -> None:
            nonlocal rounds
            while not done:
                rounds += 1
                await next_round()

        other = asyncio.create_task(others())
        catalog = fleet_of(1, 24)
        answer = await searches.driven(searches.candidates(catalog, isolated(4), b"q"), never)
        done = True
        await other
        assert len(answer.candidates) == 100_000
        # A piece takes two milliseconds, and the search at least a hundred times as long.
        assert rounds > 20

    asyncio.run(run())
