"""Two processes on one ledger: neither misses that an import has begun or ended."""

import asyncio
import itertools
import random
from typing import Any
from uuid import uuid4

import pytest

from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.import_mark import Beginning
from moorage.service.ledger import provider_cases, vocabulary_cases
from moorage.service.ledger.imports import ImportBegin, ImportFinish, Imports, RowsWrite
from moorage.store import batch
from tests.service.batch.test_shared import DONE, Pair, play
from tests.service.ledger.imports.ledgers import (
    Ledger,
    differences,
    drawn,
    listed,
    rows_of,
    sent_in_any_order,
)
from tests.service.running import TESTER

ROUNDS = 20
SOURCE = "a source"


async def quiet(pair: Pair) -> None:
    """Let the second service hear of nothing before it writes."""
    await pair.services[1].feed.stop()


async def code_of(pair: Pair, at: int, command: Any) -> Code | None:
    """Execute a command; return the code of its refusal."""
    try:
        await pair.services[at].transactor.submit(command)
    except Error as error:
        return error.code
    return None


def new_provider() -> provider_cases.ProviderCreate:
    """Return a command that creates a provider."""
    uuid = ProviderId(str(uuid4()))
    return provider_cases.ProviderCreate(uuid, f"name {uuid}")


def test_a_process_that_knows_of_nothing_is_refused() -> None:
    """The batch that would change the ledger finds the mark, and the next ones know of it."""

    async def scenario(pair: Pair) -> None:
        await quiet(pair)
        other = pair.services[1]
        await pair.one(ImportBegin(TESTER, Beginning(SOURCE)))
        assert other.imports.shown is None, "it has heard of it, so this shows nothing"
        assert await code_of(pair, 1, new_provider()) is Code.IMPORTING
        assert await code_of(pair, 1, vocabulary_cases.TraitEnsure("CUSTOM_A")) is Code.IMPORTING
        assert other.transactor.counters.retries == 1, "the second batch has read the mark first"
        await pair.one(ImportFinish(TESTER))
        assert await code_of(pair, 1, new_provider()) is None, "it still refuses"
        await other.index.current()
        assert other.imports.shown is None

    play(scenario)


def test_without_the_look_at_the_mark_it_would_change_the_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control: if batches ignore the mark, what the test above refuses is done."""
    monkeypatch.setattr(batch, "_check_mark", lambda _mark, _importing: None)

    async def scenario(pair: Pair) -> None:
        await quiet(pair)
        await pair.one(ImportBegin(TESTER, Beginning(SOURCE)))
        assert await code_of(pair, 1, new_provider()) is None
        await pair.one(ImportFinish(TESTER))

    play(scenario)


def test_readers_hear_of_it() -> None:
    """A process that only reads knows of the import from the change rows."""

    async def scenario(pair: Pair) -> None:
        other = pair.services[1]
        await pair.one(ImportBegin(TESTER, Beginning(SOURCE)))
        assert (await other.imports.under_way()).source == SOURCE
        await pair.one(ImportFinish(TESTER))
        with pytest.raises(Error) as caught:
            await other.imports.under_way()
        assert caught.value.code is Code.IMPORT_NOT_FOUND

    play(scenario)


def test_an_import_begins_or_a_provider_is_created() -> None:
    """Of a beginning and a change at the same time only one succeeds."""

    async def scenario(pair: Pair) -> None:
        seen = set()
        for turn in range(ROUNDS):
            change = new_provider()
            commands = [ImportBegin(TESTER, Beginning(SOURCE)), change]
            outcomes = await pair.both(*(commands if turn % 2 else reversed(commands)))
            begun, created = outcomes if turn % 2 else reversed(outcomes)
            seen.add((begun, created))
            if begun == DONE:
                await pair.one(ImportFinish(TESTER))
            else:
                await pair.one(provider_cases.ProviderDelete(change.uuid))
        assert seen <= {(DONE, Code.IMPORTING), (Code.LEDGER_IN_USE, DONE)}

    play(scenario)


def test_rows_are_written_before_the_end_or_not() -> None:
    """Rows that are sent while an import ends are written while it stands, or refused."""

    async def scenario(pair: Pair) -> None:

        source = drawn(random.Random(3))
        rows = rows_of(differences(Ledger(), source))
        for turn in range(ROUNDS):
            await pair.one(ImportBegin(TESTER, Beginning(SOURCE)))
            commands = [ImportFinish(TESTER), RowsWrite(rows)]
            outcomes = await pair.both(*(commands if turn % 2 else reversed(commands)))
            ended, written = outcomes if turn % 2 else reversed(outcomes)
            assert ended == DONE
            there = await listed(pair.services[0])
            assert there == (source if written == DONE else Ledger())
            assert written in (DONE, Code.IMPORT_NOT_FOUND)
            if written == DONE:
                await emptied(pair)

    play(scenario)


async def emptied(pair: Pair) -> None:
    """Empty the ledger, as for tests, at both services."""
    await pair.services[0].operations.wipe()
    await pair.services[1].index.load()


def test_one_source_at_a_time() -> None:
    """Of two sources one is imported; the same one is resumed by both."""

    async def scenario(pair: Pair) -> None:
        outcomes = await pair.both(
            ImportBegin(TESTER, Beginning("one")), ImportBegin(TESTER, Beginning("two"))
        )
        assert sorted(map(str, outcomes)) == sorted([DONE, str(Code.IMPORT_EXISTS)])
        source = ["one", "two"][outcomes.index(DONE)]
        again = await pair.both(
            ImportBegin(TESTER, Beginning(source)), ImportBegin(TESTER, Beginning(source))
        )
        assert again == [DONE, DONE]
        await pair.services[1].imports.abort(TESTER)
        assert await code_of(pair, 0, ImportFinish(TESTER)) is Code.IMPORT_NOT_FOUND

    play(scenario)


def test_an_abort_leaves_no_row_behind() -> None:
    """Rows that are written while an import is aborted are deleted, too, or refused."""

    async def scenario(pair: Pair) -> None:

        rows = rows_of(differences(Ledger(), drawn(random.Random(5))))
        for _ in range(ROUNDS):
            await pair.one(ImportBegin(TESTER, Beginning(SOURCE)))
            await pair.one(RowsWrite(rows))
            ended, *written = await asyncio.gather(
                pair.services[0].imports.abort(TESTER),
                *(code_of(pair, 1, RowsWrite(rows)) for _ in range(3)),
            )
            assert ended is None
            assert {*written} <= {None, Code.IMPORT_NOT_FOUND, Code.IMPORT_TAKEN}
            assert await listed(pair.services[1]) == Ledger()

    play(scenario)


class Alternating:
    """The imports of both services in turn, as behind a load balancer."""

    def __init__(self, pair: Pair) -> None:
        self._turns = itertools.cycle(pair.services)

    @property
    def imports(self) -> Imports:
        """The imports of the next service."""
        return next(self._turns).imports


def test_rows_may_come_through_both() -> None:
    """An import through two processes ends with its rows, and with the same catalog in both."""

    async def scenario(pair: Pair) -> None:
        for seed in range(3):
            choice, source = random.Random(seed), Ledger()
            await pair.one(ImportBegin(TESTER, Beginning(SOURCE)))
            for _ in range(3):
                source = source.drifted(choice)
                pieces = differences(await listed(pair.services[0]), source)
                await sent_in_any_order(Alternating(pair), pieces, choice)
                assert await listed(pair.services[1]) == source
            one, other = [await service.index.current() for service in pair.services]
            assert one.differences(other) == []
            await pair.services[seed % 2].imports.abort(TESTER)

    play(scenario)
