"""Faults between processes that share a ledger, and how each process recovers."""

import asyncio
from typing import Any

import psycopg
import pytest
from msgspec import json

from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.model import Provider
from moorage.service.batch.transactor import HELD_MAX
from moorage.service.chores import FORGET_MAX
from moorage.service.ledger import vocabulary_cases
from moorage.store.postgres import connection
from tests.service.batch.test_shared import Pair, play
from tests.service.running import TESTER, provider_id

COUNT = "SELECT COUNT(*) FROM batch WHERE created_at < now() - interval '1 hour'"


def write_changes(pair: Pair, rows: list[tuple[str, str, Any]]) -> None:
    """Write change rows of (kind, key, body) at the next revision, as another process would."""
    with psycopg.connect(pair.url) as server:
        raised = server.execute("UPDATE clock SET revision = revision + 1 RETURNING revision")
        ((revision,),) = raised.fetchall()
        for n, (kind, key, body) in enumerate(rows):
            server.execute(
                "INSERT INTO change VALUES (%s, %s, 1, %s, %s, %s)",
                (revision, n, kind, key, json.encode(body).decode()),
            )


def test_a_change_that_cannot_be_followed() -> None:
    """If a batch fails when half of it is applied, the index is loaded again: no reader sees half.

    The rows written here give a provider a root that does not exist.
    """

    async def scenario(pair: Pair) -> None:
        there = await pair.provider(VCPU=8)
        whole, torn, root = (provider_id(n) for n in range(3))
        at = 1_700_000_000_000_000
        write_changes(
            pair,
            [
                ("provider", whole, Provider(whole, "whole", 0, None, whole, at, at)),
                ("provider", torn, Provider(torn, "torn", 0, root, root, at, at)),
            ],
        )
        for service in pair.services:
            catalog = await service.index.current()
            assert catalog.record(there) is not None
            assert catalog.record(ProviderId(whole)) is None
            assert catalog.record(ProviderId(torn)) is None
        after = await pair.provider(VCPU=8)
        for service in pair.services:
            assert (await service.index.current()).record(after) is not None

    play(scenario)


def test_old_receipts_are_deleted() -> None:
    """All receipts older than an hour are deleted, in several transactions, without a revision."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        with psycopg.connect(pair.url) as server:
            server.execute(
                "INSERT INTO batch (id, revision, kept, created_at)"
                " SELECT gen_random_uuid(), 0, true, now() - n * interval '3 hours'"
                f" FROM generate_series(1, {FORGET_MAX + 5}) AS n"
            )
        assert await one.chores.forget_receipts() == FORGET_MAX + 5
        assert await other.chores.forget_receipts() == 0
        with psycopg.connect(pair.url) as server:
            assert server.execute(COUNT).fetchone() == (0,)

    play(scenario)


def test_a_lock_that_a_peer_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch waits for the lock `HELD_MAX` times, then fails as a whole, not request by request.

    The clock is locked for long while a COMMIT of another process waits for a standby.
    """
    impatient = connection._SETTINGS.replace("'15s'", "'100ms'")
    monkeypatch.setattr(connection, "_SETTINGS", impatient)

    async def scenario(pair: Pair) -> None:
        transactor = pair.services[0].transactor
        asked = [vocabulary_cases.TraitEnsure(f"CUSTOM_{n}") for n in range(8)]
        with psycopg.connect(pair.url) as intruder:
            intruder.execute("SELECT * FROM clock FOR UPDATE")
            answers = await asyncio.gather(*map(transactor.submit, asked), return_exceptions=True)
        for answer in answers:
            assert isinstance(answer, Error) and answer.code is Code.UNAVAILABLE
        assert transactor.counters.retries == HELD_MAX
        await asyncio.gather(*map(transactor.submit, asked))

    play(scenario)


@pytest.mark.parametrize("raised", [False, True])
def test_a_batch_on_top_of_another_history(raised: bool) -> None:
    """A process that has not read since a restore does not treat its own batch as the next one.

    The numbers would fit: the other process has written as many revisions as were lost. With
    `raised`, the process has begun an epoch itself, on request.
    """

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        await pair.one(vocabulary_cases.TraitEnsure("CUSTOM_LOST"))
        for service in pair.services:
            assert "CUSTOM_LOST" in (await service.index.current()).traits
        await other.feed.stop()  # it gets no notifications from now on
        with psycopg.connect(pair.url) as server:
            server.execute("DELETE FROM trait")
            server.execute("DELETE FROM change WHERE revision = (SELECT revision FROM clock)")
            server.execute("UPDATE clock SET revision = revision - 1")
        await pair.one(vocabulary_cases.TraitEnsure("CUSTOM_NEW"))
        assert other.index.revision == (await one.watch.now()).revision
        if raised:
            await other.operations.epoch_raise(by=TESTER)
        await other.transactor.submit(vocabulary_cases.TraitEnsure("CUSTOM_OTHER"))
        names = (await other.index.current()).traits.keys()
        assert {"CUSTOM_NEW", "CUSTOM_OTHER"} <= names
        assert "CUSTOM_LOST" not in names

    play(scenario)


def test_a_token_that_was_revoked_after_a_restore() -> None:
    """As many tokens are revoked as before, but different ones: the peer must read them again."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        (first, first_token), (second, second_token) = [
            await one.access.create(name, "reader", by=TESTER) for name in ("first", "second")
        ]
        await one.access.revoke(first_token.id, by=TESTER)
        assert await other.access.find(first) is None
        assert await other.access.find(second) is not None
        with psycopg.connect(pair.url) as server:
            server.execute("UPDATE access_token SET revoked_at = NULL")
        await one.operations.epoch_raise(by=TESTER)
        await one.access.revoke(second_token.id, by=TESTER)
        assert await other.access.find(second) is None
        assert await other.access.find(first) is not None

    play(scenario)
