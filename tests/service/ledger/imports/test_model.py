"""Whatever rows are sent, in whatever chunks and order: in the end they are what is listed."""

import asyncio
import random

import pytest

from moorage.core.errors import Code, Error
from moorage.core.ledger import imported_rows
from moorage.core.ledger.import_mark import Beginning
from moorage.service.app import Service
from tests.service.ledger.imports.conftest import Database
from tests.service.ledger.imports.ledgers import (
    Ledger,
    Piece,
    differences,
    drawn,
    listed,
    rows_of,
    sent_in_any_order,
)
from tests.service.running import TESTER
from tests.support.seeds import seeds

SEEDS = 24
PASSES = 3


@seeds(SEEDS, chunk=6)
def test_rows_are_as_they_were_sent(database: Database, seeds: range) -> None:
    """Passes of a source that changes end with its rows, in services that come and go."""

    async def scenario() -> None:
        for seed in seeds:
            await play(database, random.Random(seed))

    asyncio.run(scenario())


async def play(database: Database, choice: random.Random) -> None:
    """Import a drawn source in several passes, then abort: the database is empty again."""
    source = Ledger()
    async with database.served() as service:
        await service.imports.begin(Beginning("a source"), TESTER)
    for turn in range(PASSES):
        source = source.drifted(choice) if turn else drawn(choice)
        async with database.served() as service:
            assert service.imports.shown is not None
            pieces = differences(await listed(service), source)
            cut = choice.randrange(len(pieces) + 1)  # the pass ends here, as if it were killed
            await halfway(service, pieces[:cut], choice)
        async with database.served() as service:
            await service.imports.begin(Beginning("a source"), TESTER)
            there = await listed(service)
            await sent_in_any_order(service, differences(there, source), choice)
            assert await listed(service) == source
            revision = service.index.revision
            everything = rows_of(differences(Ledger(), source))
            await service.imports.write(everything)
            assert service.index.revision == revision, "the same rows again have changed something"
    async with database.served() as service:
        await service.imports.abort(TESTER)
        assert await listed(service) == Ledger()
        with pytest.raises(Error) as caught:
            await service.imports.under_way()
        assert caught.value.code is Code.IMPORT_NOT_FOUND


async def halfway(service: Service, pieces: list[Piece], choice: random.Random) -> None:
    """Send some pieces one by one; those that need others are refused."""
    choice.shuffle(pieces)
    for piece in pieces:
        try:
            await service.imports.write(rows_of([piece]))
        except Error:
            continue


def test_a_provider_that_is_another_must_be_repeated(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: without the repetition the index differs from the rows, and a check finds it."""
    monkeypatch.setattr(imported_rows, "_is_another", lambda _before, _after: False)

    async def scenario() -> None:
        for seed in range(SEEDS):
            await play(database, random.Random(seed))

    with pytest.raises(AssertionError, match="in the other"):
        asyncio.run(scenario())
