"""One read of the change rows serves the index and the followers alike."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg

from moorage.core.admission.facts import Changes
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.service_time import When
from moorage.service.app import Service
from moorage.service.clock import SystemClock
from moorage.service.feed.followers import RoomFollowers
from moorage.service.ledger.vocabulary_cases import TraitEnsure
from moorage.store.api import Plan, Unavailable
from moorage.store.changelog import Batch
from moorage.store.open import open_engine
from tests.service.batch.test_shared import CLASSES, TRAITS, Pair, play
from tests.service.pools import ask, pool_put, spec
from tests.service.running import fatal, running


class Told:
    """A follower that keeps what it was notified of."""

    def __init__(self) -> None:
        self.changes: list[Changes] = []
        self._heard = asyncio.Event()

    def __call__(self, changes: Changes, when: When) -> None:
        self.changes.append(changes)
        self._heard.set()

    async def until(self, there: Callable[[], bool]) -> None:
        """Wait for the notification after which something is so."""
        async with asyncio.timeout(20):
            while not there():
                self._heard.clear()
                await self._heard.wait()

    @property
    def pools(self) -> list[str]:
        """The names of the pools, in order."""
        return [name for changes in self.changes for name in changes.pools]


def counted(service: Service) -> list[str]:
    """Return the list to which each read of change rows is added from now on, by its plan."""
    names: list[str] = []

    def counting(inner: Callable[[Plan[Any]], Awaitable[Any]]) -> Any:
        def counted(plan: Any) -> Awaitable[Any]:
            if plan.__name__.startswith("changes_"):
                names.append(plan.__name__)
            return inner(plan)

        return counted

    engine: Any = service.engine
    engine.look, engine.read = counting(engine.look), counting(engine.read)
    return names


async def quiet(service: Service) -> None:
    """Let a service look only when it is asked, with all that was committed reported."""
    await service.feed.stop()
    await service.index.current()


async def knows(service: Service, *names: str) -> None:
    """Wait until the metrics of a service have these pools, and no others."""
    told, tally = Told(), service.admission.tally
    service.feed._followers.admission.add(told)
    await told.until(lambda: tally.pools.keys() == {*names})


def test_one_read_serves_both() -> None:
    """A search that follows a peer reads once; the followers have the same batches after it."""

    async def scene(pair: Pair) -> None:
        one, other = pair.services
        told = Told()
        other.feed._followers.admission.add(told)
        await quiet(other)
        names, rung = counted(other), other.feed.bell.listen()
        uuid = await pair.provider(VCPU=8)
        await pool_put(one.admission, "p", spec(1))
        lease = (await ask(one.admission, "1", "p")).lease
        assert (await other.index.current()).record(uuid) is not None
        assert names == ["changes_load"]
        assert other.index.revision == one.index.revision
        assert told.pools == ["p", "p"]
        assert told.changes[-1].leases == {lease.id: lease}
        assert rung.is_set()

    play(scene)


def test_an_own_batch_is_not_read() -> None:
    """It is handed over by the transactor; the next read finds nothing new."""

    async def scene(pair: Pair) -> None:
        one, _ = pair.services
        await quiet(one)
        told = Told()
        one.feed._followers.admission.add(told)
        await pool_put(one.admission, "p", spec(1))
        assert told.pools == ["p"]
        await one.index.current()
        assert told.pools == ["p"]

    play(scene)


def test_what_a_peer_committed_before_is_read_first() -> None:
    """An own batch does not move the position past a peer's that was not read yet."""

    async def scene(pair: Pair) -> None:
        one, other = pair.services
        await quiet(other)
        told = Told()
        other.feed._followers.admission.add(told)
        uuid = await pair.provider(VCPU=8)
        await pool_put(one.admission, "theirs", spec(1))
        before = other.index.revision
        await pool_put(other.admission, "own", spec(1))
        assert (other.index.revision, told.pools) == (before, ["own"])
        assert (await other.index.current()).record(uuid) is not None
        assert told.pools == ["own", "theirs", "own"]

    play(scene)


def test_an_own_batch_after_an_unknown_one_is_read_without_a_request() -> None:
    """Own notifications wake nobody, so the batch itself begins the read that hands it over."""

    async def scene(pair: Pair) -> None:
        one, other = pair.services
        await other.feed._loop.stop()  # it does not hear of its peer
        await other.index.current()
        told = Told()
        other.feed._followers.admission.add(told)
        before = other.index.revision
        await pool_put(one.admission, "theirs", spec(1))
        await pool_put(other.admission, "own", spec(1))
        await told.until(lambda: told.pools == ["own", "theirs", "own"])
        assert other.index.revision == before + 2

    play(scene)


def test_nothing_older_is_reported_after_what_is_newer() -> None:
    """An own batch that was read before it could be handed over is not reported again."""

    async def scene(pair: Pair) -> None:
        one, other = pair.services
        await quiet(other)
        await pool_put(one.admission, "p", spec(1))
        await pool_put(one.admission, "p", spec(2))
        await other.index.current()
        told, position = Told(), other.feed.position
        other.feed._followers.admission.add(told)
        late = Batch(position.revision - 1, LedgerChanges(), Instant(1), [])
        stale = Changes(pools={"p": None}, heard={LeaseId("a"): Instant(7)})
        when = await other.admission.queries.now()
        await other.feed.committed(position.epoch, late, stale, None, when)
        assert told.changes == [Changes(heard=stale.heard)]
        assert other.feed.position == position

    play(scene)


def test_a_damaged_row_of_a_lease_stops_no_search() -> None:
    """The followers read the whole state instead; the index continues."""

    async def scene(pair: Pair) -> None:
        one, other = pair.services
        await pool_put(one.admission, "p", spec(1))
        await quiet(other)
        await ask(one.admission, "1", "p")
        told = Told()
        other.feed._followers.admission.add(told)
        with psycopg.connect(pair.url) as server:
            server.execute("UPDATE change SET body = '{}' WHERE kind = 'lease'")
        uuid = await pair.provider(VCPU=8)
        assert (await other.index.current()).record(uuid) is not None
        # The first reading, which begins with the service, may still report the state before it.
        await told.until(
            lambda: any(
                pool and pool.occupied for one in told.changes for pool in one.pools.values()
            )
        )

    play(scene)


def test_a_damaged_row_of_a_provider_stops_no_search() -> None:
    """The index is read again, past the damaged row."""

    async def scene(pair: Pair) -> None:
        _, other = pair.services
        await quiet(other)
        uuid = await pair.provider(VCPU=8)
        with psycopg.connect(pair.url) as server:
            server.execute("UPDATE change SET body = '{}' WHERE kind = 'provider'")
        assert (await other.index.current()).record(uuid) is not None

    play(scene)


def test_a_restore_is_followed_by_both() -> None:
    """After a restore neither the index nor a follower keeps what was lost."""

    async def scene(pair: Pair) -> None:
        one, other = pair.services
        await pool_put(one.admission, "kept", spec(1))
        uuid = await pair.provider()
        await pool_put(one.admission, "lost", spec(1))
        for service in pair.services:
            await service.index.current()
            await knows(service, "kept", "lost")
        with psycopg.connect(pair.url) as server:
            server.execute("DELETE FROM pool WHERE name = 'lost'")
            server.execute("DELETE FROM provider WHERE uuid = %s", (uuid,))
            server.execute("DELETE FROM change WHERE revision >= (SELECT revision - 1 FROM clock)")
            server.execute("UPDATE clock SET revision = revision - 2")
        for service in pair.services:
            assert (await service.index.current()).record(uuid) is None
            await knows(service, "kept")
        after = await pair.provider()
        await pool_put(one.admission, "after", spec(1))
        assert (await other.index.current()).record(after) is not None
        await knows(other, "kept", "after")

    play(scene)


def test_an_own_commit_that_is_lost_during_a_look() -> None:
    """A new epoch is entered only if it has the last commit that was handed over, also just now."""

    async def scene(pair: Pair) -> None:
        one, other = pair.services
        await pair.provider()
        for service in pair.services:
            await quiet(service)
        engine: Any = other.engine
        look, reached, go = engine.look, asyncio.Event(), asyncio.Event()

        async def late(plan: Plan[Any]) -> Any:
            reached.set()
            await go.wait()
            return await look(plan)

        engine.look = late
        looking = asyncio.create_task(other.index.current())
        await reached.wait()
        await other.transactor.submit(TraitEnsure("CUSTOM_LOST"))
        with psycopg.connect(pair.url) as server:
            server.execute("DELETE FROM trait WHERE name = 'CUSTOM_LOST'")
            server.execute("DELETE FROM change WHERE revision = (SELECT revision FROM clock)")
            server.execute("UPDATE clock SET revision = revision - 1, epoch = epoch + 1")
        for name in ("CUSTOM_KEPT", "CUSTOM_TOO"):
            await one.transactor.submit(TraitEnsure(name))
        go.set()
        found = (await looking).traits.keys() - TRAITS
        assert found == {"CUSTOM_KEPT", "CUSTOM_TOO"}

    play(scene)


def test_a_peer_that_restarts() -> None:
    """It begins with all there is; those that stay follow it without reading anything again."""

    async def scene(pair: Pair) -> None:
        one, other = pair.services
        catalog = await other.index.current()
        await pool_put(one.admission, "before", spec(1))
        for n in range(3):
            engine = open_engine(pair.url)
            peer = await Service.start(engine, SystemClock(), CLASSES, TRAITS, on_fatal=fatal)
            assert "before" in peer.admission.tally.pools
            await pool_put(peer.admission, f"during-{n}", spec(1))
            await peer.stop()
            assert await other.index.current() is catalog
            assert f"during-{n}" in other.admission.tally.pools

    play(scene)


def test_a_process_alone_reads_no_change_rows(tmp_path: Path) -> None:
    """On SQLite the commits of the process are all there is."""

    async def scene() -> None:
        async with running(tmp_path / "ledger") as one:
            names = counted(one.service)
            told = Told()
            one.service.feed._followers.admission.add(told)
            await one.provider(1, VCPU=8)
            await pool_put(one.service.admission, "p", spec(1))
            await one.service.index.current()
            assert told.pools == ["p"]
            assert names == []

    asyncio.run(scene())


def test_newer_changes_prevail_over_the_state_that_was_read() -> None:
    """While the whole state is read, commits are reported and then applied on top of it."""

    async def scene() -> None:
        followers, told = RoomFollowers().admission, Told()
        followers.add(told)
        reading, go, tries = asyncio.Event(), asyncio.Event(), 0
        when: Any = None

        async def reload() -> tuple[Changes, When]:
            nonlocal tries
            tries += 1
            reading.set()
            await go.wait()
            if tries == 1:
                raise Unavailable("for a moment")
            return Changes(pools={"a": None, "b": None}), when

        newer: Any = "newer"
        followers.start(reload)
        await reading.wait()
        followers.notify(Changes(pools={"a": newer}), when)
        assert told.pools == ["a"]
        go.set()
        reading.clear()
        go.clear()
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            await reading.wait()
        followers.notify(Changes(pools={"b": newer}), when)
        go.set()
        await told.until(lambda: len(told.changes) == 3)
        assert told.changes[-1].pools == {"a": None, "b": newer}
        await followers.stop()

    asyncio.run(scene())
