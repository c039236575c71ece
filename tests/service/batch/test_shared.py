"""Two services on one database: simultaneous operations take effect one after the other."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import psycopg

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.inventory import InventorySpec
from moorage.service.app import Service
from moorage.service.clock import SystemClock
from moorage.service.ledger import allocation_cases, provider_cases, vocabulary_cases
from moorage.store.api import Engine
from moorage.store.open import open_engine
from tests.service.running import TESTER, fatal
from tests.support import cluster

CLASSES = frozenset({"VCPU", "DISK_GB"})
TRAITS = frozenset({"STORAGE_DISK_SSD"})
ROUNDS = 30

DONE = "done"
Outcome = str | Code


class Pair:
    """Two services that share a ledger."""

    def __init__(self, url: str, one: Service, other: Service) -> None:
        self.url = url
        self.services = (one, other)

    async def one(self, command: Any) -> Any:
        """Execute a command at the first service."""
        return await self.services[0].transactor.submit(command)

    async def both(self, *commands: Any) -> list[Outcome]:
        """Execute commands at the same time, alternately at both services."""
        answers = await asyncio.gather(
            *(
                self.services[n % 2].transactor.submit(command)
                for n, command in enumerate(commands)
            ),
            return_exceptions=True,
        )
        return [_outcome(answer) for answer in answers]

    async def provider(self, parent: ProviderId | None = None, **totals: int) -> ProviderId:
        """Create a provider with these inventories."""
        uuid = ProviderId(str(uuid4()))
        await self.one(provider_cases.ProviderCreate(uuid, f"name {uuid}", parent))
        specs = {name: InventorySpec(total) for name, total in totals.items()}
        if specs:
            await self.one(provider_cases.InventoriesReplace(uuid, 0, specs))
        return uuid


class HoldingEngine:
    """An engine that can hold back the result of a call until the test permits it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._calls: dict[str, int] = {}
        self.reached: dict[str, asyncio.Event] = {}
        self.go: dict[str, asyncio.Event] = {}

    def hold(self, name: str, after: int = 1) -> None:
        """Hold back the result of the `after`-th call of method `name` from now on."""
        self._calls[name], self.reached[name] = after, asyncio.Event()
        self.go[name] = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        if name not in self._calls:
            return found

        async def held(*args: Any, **more: Any) -> Any:
            answer = await found(*args, **more)
            self._calls[name] -= 1
            if not self._calls[name]:
                self.reached[name].set()
                await self.go[name].wait()
            return answer

        return held


def _outcome(answer: Any) -> Outcome:
    if isinstance(answer, Error):
        return answer.code
    if isinstance(answer, BaseException):
        raise answer
    return DONE


def claim(amounts: dict[ProviderId, dict[str, int]]) -> allocation_cases.AllocationsReplace:
    """A claim of these amounts for a new consumer."""
    request = ConsumerRequest(ConsumerId(str(uuid4())), amounts, "project", "user")
    return allocation_cases.AllocationsReplace([request])


def play(scenario: Callable[[Pair], Awaitable[None]]) -> None:
    """Run a scenario with two services; at the end both must find the same, correct ledger."""

    async def run() -> None:
        url = cluster.fresh()
        services = [
            await Service.start(open_engine(url), SystemClock(), CLASSES, TRAITS, on_fatal=fatal)
            for _ in range(2)
        ]
        try:
            await scenario(Pair(url, *services))
            for service in services:
                assert await service.operations.check() == []
            one, other = [await service.index.current() for service in services]
            assert one.differences(other) == []
        finally:
            for service in services:
                await service.stop()
        cluster.shared().drop(cluster.database_of(url))

    asyncio.run(run())


def test_a_name_is_given_once() -> None:
    """Of two creations of a provider with the same name one succeeds, the other is refused."""

    async def scenario(pair: Pair) -> None:
        for n in range(ROUNDS):
            uuids = [ProviderId(str(uuid4())) for _ in range(2)]
            outcomes = await pair.both(
                *(provider_cases.ProviderCreate(u, f"same {n}") for u in uuids)
            )
            assert sorted(outcomes) == sorted([DONE, Code.DUPLICATE_PROVIDER])

    play(scenario)


def test_a_parent_stays_while_it_has_children() -> None:
    """One adds a child while the other deletes the parent: only one of them succeeds."""

    async def scenario(pair: Pair) -> None:
        for n in range(ROUNDS):
            parent, child = await pair.provider(), ProviderId(str(uuid4()))
            add, delete = (
                provider_cases.ProviderCreate(child, f"child {n}", parent),
                provider_cases.ProviderDelete(parent),
            )
            first, second = (add, delete) if n % 2 else (delete, add)
            outcomes = set(await pair.both(first, second))
            assert outcomes in (
                {DONE, Code.PROVIDER_HAS_CHILDREN},
                {DONE, Code.PARENT_UNKNOWN},
            )

    play(scenario)


def test_no_loop_of_two_trees() -> None:
    """Each moves its tree below the other's while others claim: only one of them succeeds."""

    async def scenario(pair: Pair) -> None:
        for _ in range(ROUNDS):
            a, b = await pair.provider(), await pair.provider()
            below_a = await pair.provider(a, VCPU=100)
            below_b = await pair.provider(b, VCPU=100)
            outcomes = await pair.both(
                provider_cases.ProviderUpdate(a, f"name {a}", True, below_b, True),
                provider_cases.ProviderUpdate(b, f"name {b}", True, below_a, True),
                *(claim({below_b: {"VCPU": 1}, below_a: {"VCPU": 1}}) for _ in range(6)),
            )
            assert sorted(outcomes[:2]) == sorted([DONE, Code.TREE_LOOP])
            assert outcomes[2:] == [DONE] * 6

    play(scenario)


def test_a_class_or_trait_is_created_once() -> None:
    """Of two creations of a class one succeeds; of two calls that ensure a trait one creates it."""

    async def scenario(pair: Pair) -> None:
        for n in range(ROUNDS):
            made = vocabulary_cases.ClassCreate(f"CUSTOM_{n}")
            assert sorted(await pair.both(made, made)) == sorted([DONE, Code.CLASS_EXISTS])
            ensured = await asyncio.gather(
                *(
                    s.transactor.submit(vocabulary_cases.TraitEnsure(f"CUSTOM_{n}"))
                    for s in pair.services
                )
            )
            assert sorted(new for _, new in ensured) == [False, True]

    play(scenario)


def test_a_class_or_trait_in_use_stays() -> None:
    """One begins to use a class or trait while the other deletes it: only one of them succeeds."""

    async def scenario(pair: Pair) -> None:
        for n in range(ROUNDS):
            uuid, name = await pair.provider(), f"CUSTOM_{n}"
            await pair.one(vocabulary_cases.ClassCreate(name))
            await pair.one(vocabulary_cases.TraitEnsure(name))
            use: Any = provider_cases.InventoryCreate(uuid, name, InventorySpec(1))
            outcomes = set(await pair.both(use, vocabulary_cases.ClassDelete(name)))
            assert outcomes in ({DONE, Code.CLASS_IN_USE}, {DONE, Code.CLASS_UNKNOWN})
            generation = 1 if Code.CLASS_IN_USE in outcomes else 0
            use = provider_cases.TraitsReplace(uuid, generation, frozenset({name}))
            outcomes = set(await pair.both(vocabulary_cases.TraitDelete(name), use))
            assert outcomes in ({DONE, Code.TRAIT_IN_USE}, {DONE, Code.TRAIT_UNKNOWN})

    play(scenario)


def test_a_class_is_renamed_while_others_claim() -> None:
    """Claims of the old name come before the renaming or are refused; releases always succeed."""

    async def scenario(pair: Pair) -> None:
        await pair.one(vocabulary_cases.ClassCreate("CUSTOM_0"))
        uuid = await pair.provider(CUSTOM_0=10_000, VCPU=10_000)
        holders: list[ConsumerId] = []
        for n in range(ROUNDS):
            claims = [claim({uuid: {f"CUSTOM_{n}": 1, "VCPU": 1}}) for _ in range(8)]
            releases = [allocation_cases.AllocationsDelete(holder) for holder in holders]
            rename = vocabulary_cases.ClassRename(f"CUSTOM_{n}", f"CUSTOM_{n + 1}")
            outcomes = await pair.both(*claims[:4], *releases, rename, *claims[4:])
            assert outcomes[4 : 5 + len(releases)] == [DONE] * (1 + len(releases))
            taken = [*outcomes[:4], *outcomes[-4:]]
            assert set(taken) <= {DONE, Code.CLASS_UNKNOWN}
            holders = [
                one.requests[0].consumer
                for one, outcome in zip(claims, taken, strict=True)
                if outcome == DONE
            ]

    play(scenario)


def test_many_claims_fill_the_ledger_exactly() -> None:
    """Both claim far more than there is, on providers in any order: all of it is taken, no more."""

    async def scenario(pair: Pair) -> None:
        choice = random.Random(7)
        uuids = [await pair.provider(VCPU=50) for _ in range(4)]
        commands = [claim({u: {"VCPU": 1} for u in choice.sample(uuids, 2)}) for _ in range(400)]
        outcomes = await pair.both(*commands)
        assert set(outcomes) == {DONE, Code.CAPACITY_EXCEEDED}
        outcomes += await pair.both(*(claim({u: {"VCPU": 1}}) for u in uuids for _ in range(50)))
        catalog = await pair.services[1].index.current()
        for uuid in uuids:
            record = catalog.record(uuid)
            assert record is not None
            assert record.inventories["VCPU"].used == 50

    play(scenario)


def test_changes_of_a_peer_arrive_without_requests() -> None:
    """A service without requests follows its peers by their notifications."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        uuid = await pair.provider()
        async with asyncio.timeout(10):
            while other.index.revision < one.index.revision:
                await other.engine.woken(1.0)
        assert other.index.catalog.record(uuid) is not None

    play(scenario)


def test_forgotten_change_rows_and_a_wiped_ledger() -> None:
    """An index that missed compacted changes is loaded again."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        await other.feed.stop()
        before = await pair.provider(VCPU=1)
        await one.chores.compact()
        await one.operations.wipe()
        after = await pair.provider(VCPU=1)
        catalog = await other.index.current()
        assert catalog.record(before) is None
        assert catalog.record(after) is not None

    play(scenario)


def test_nothing_is_missed_when_the_index_is_loaded_during_a_look() -> None:
    """If the loaded snapshot is older than the start of the look, the look begins again from it."""

    async def scenario(pair: Pair) -> None:
        index, feed = pair.services[1].index, pair.services[1].feed
        await feed.stop()
        engine = HoldingEngine(feed._engine)
        index._engine = feed._engine = engine
        engine.hold("read_aside", after=2)
        loading = asyncio.create_task(index.load())
        await engine.reached["read_aside"].wait()
        first = await pair.provider()
        await index.current()
        engine.hold("look")
        second = await pair.provider()
        looking = asyncio.create_task(index.current())
        await engine.reached["look"].wait()
        engine.go["read_aside"].set()
        await loading
        engine.go["look"].set()
        catalog = await looking
        assert first in catalog.places and second in catalog.places

    play(scenario)


def test_a_history_that_lost_its_end() -> None:
    """If the server has fewer revisions than were seen, the server is right."""

    async def scenario(pair: Pair) -> None:
        kept, lost = await pair.provider(), await pair.provider()
        for service in pair.services:
            assert (await service.index.current()).record(lost) is not None
        with psycopg.connect(pair.url) as server:
            server.execute("DELETE FROM provider WHERE uuid = %s", (lost,))
            server.execute("DELETE FROM change WHERE revision = (SELECT revision FROM clock)")
            server.execute("UPDATE clock SET revision = revision - 1")
        for service in pair.services:
            catalog = await service.index.current()
            assert catalog.record(kept) is not None
            assert catalog.record(lost) is None

    play(scenario)


def test_a_revoked_token_is_refused_everywhere() -> None:
    """The peer, too, refuses a token as soon as its revocation or rotation has been answered."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        for _ in range(ROUNDS):
            secret, token = await one.access.create("someone", "reader", by=TESTER)
            found = await other.access.find(secret)
            assert found is not None
            assert found.id == token.id
            await one.access.revoke(token.id, by=TESTER)
            assert await other.access.find(secret) is None
            old, token = await one.access.create("someone", "reader", by=TESTER)
            assert await other.access.find(old) is not None
            new, _ = await one.access.rotate(token.id, grace=0, by=TESTER)
            assert await other.access.find(old) is None
            assert await other.access.find(new) is not None

    play(scenario)


def test_time_comes_from_the_database() -> None:
    """Processes that share a ledger use the database's clock, not their own."""

    class Stopped:
        def now(self) -> Instant:
            return Instant(1)

        def monotonic(self) -> int:
            return 1

    def now(url: str) -> int:
        with psycopg.connect(url) as server:
            told = server.execute("SELECT extract(epoch FROM clock_timestamp()) * 1000000")
            return int(told.fetchone()[0])  # type: ignore[index]  # there is one row

    async def run() -> None:
        url = cluster.fresh()
        service = await Service.start(open_engine(url), Stopped(), CLASSES, TRAITS, on_fatal=fatal)
        before = now(url)
        made = await service.transactor.submit(
            provider_cases.ProviderCreate(ProviderId(str(uuid4())), "one")
        )
        assert before <= made.created_at <= now(url)
        await service.stop()
        cluster.shared().drop(cluster.database_of(url))

    asyncio.run(run())
