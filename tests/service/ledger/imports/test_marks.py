"""The mark of an import outlives restarts and backups, and is reported to followers."""

import asyncio
import random
from pathlib import Path
from typing import Any

from msgspec import json

from moorage.core.errors import Code, Error
from moorage.core.ids import ConsumerId
from moorage.core.ledger.import_mark import Beginning
from moorage.service.ledger import vocabulary_cases
from tests.service.ledger.imports.conftest import Database
from tests.service.ledger.imports.ledgers import Ledger, differences, drawn, listed, rows_of
from tests.service.running import TESTER, claim, running

SOURCE = "a source"


async def code_of(awaitable: Any) -> Code | None:
    """Return the code of a refusal."""
    try:
        await awaitable
    except Error as error:
        return error.code
    return None


def test_a_restored_backup_is_still_importing(tmp_path: Path) -> None:
    """What was copied during an import refuses everything else, until it is finished or aborted."""

    async def scenario() -> None:
        source = drawn(random.Random(1))
        async with running(tmp_path / "ledger") as one:
            await one.service.imports.begin(Beginning(SOURCE), TESTER)
            await one.service.imports.write(rows_of(differences(Ledger(), source)))
            await one.service.operations.backup(str(tmp_path / "copy"), by=TESTER)
            await one.service.imports.finish(TESTER)
        async with running(tmp_path / "copy") as two:
            trait = vocabulary_cases.TraitEnsure("CUSTOM_NEW")
            assert await code_of(two.submit(trait)) is Code.IMPORTING
            assert await listed(two.service) == source
            await two.service.imports.abort(TESTER)
            assert await code_of(two.submit(trait)) is None

    asyncio.run(scenario())


def test_followers_and_auditors_are_notified(database: Database) -> None:
    """The change feed has the mark, and the audit log how many rows there were."""

    async def scenario() -> None:
        source = drawn(random.Random(2))
        async with database.served() as service:
            cursor = await service.watch.now()
            await service.imports.begin(Beginning(SOURCE), TESTER)
            await service.imports.write(rows_of(differences(Ledger(), source)))
            await service.imports.finish(TESTER)
            window = await service.watch.window(cursor)
            reported = [one.row for one in window.changes if one.row.kind == "import"]
            assert [one.key for one in reported] == ["ledger", "ledger"]
            assert reported[0].body is not None
            assert json.decode(reported[0].body)["source"] == SOURCE
            assert reported[1].body is None
            rows, _ = await service.audit.page(None, 10)
            found = {row.action: json.decode(row.after or "null") for row in rows}
            assert found["import.begin"]["providers"] == 0
            assert found["import.finish"] == {
                "source": SOURCE,
                "classes": len(source.classes),
                "traits": len(source.traits),
                "providers": len(source.providers),
                "consumers": len(source.consumers),
            }

    asyncio.run(scenario())


def test_an_empty_ledger_is_needed(database: Database) -> None:
    """A single custom trait is enough to refuse an import; so is a provider."""

    async def scenario() -> None:
        async with database.served() as service:
            await service.transactor.submit(vocabulary_cases.TraitEnsure("CUSTOM_A"))
            assert (
                await code_of(service.imports.begin(Beginning(SOURCE), TESTER))
                is Code.LEDGER_IN_USE
            )
            await service.transactor.submit(vocabulary_cases.TraitDelete("CUSTOM_A"))
            assert await code_of(service.imports.begin(Beginning(SOURCE), TESTER)) is None
            await service.imports.finish(TESTER)
            for asked in (
                service.imports.finish(TESTER),
                service.imports.abort(TESTER),
                service.imports.write(rows_of([])),
            ):
                assert await code_of(asked) is Code.IMPORT_NOT_FOUND

    asyncio.run(scenario())


def test_an_imported_ledger_is_used(database: Database) -> None:
    """Afterwards claims respect the capacity, and what is over it may be given back."""

    async def scenario() -> None:
        source = drawn(random.Random(4))
        async with database.served() as service:
            await service.imports.begin(Beginning(SOURCE), TESTER)
            await service.imports.write(rows_of(differences(Ledger(), source)))
            await service.imports.finish(TESTER)
            images = source.providers.values()
            image = next(one for one in images if "VCPU" in one.inventories)
            impossible = claim(99, image.uuid, VCPU=image.inventories["VCPU"].max_unit + 1)
            refused = await code_of(service.transactor.submit(impossible))
            assert refused in (Code.UNITS_VIOLATED, Code.CAPACITY_EXCEEDED)
            consumer = next(iter(source.consumers))
            assert await service.reads.consumer(ConsumerId(consumer)) is not None

    asyncio.run(scenario())


def test_wiping_ends_an_import(database: Database) -> None:
    """A server of tests that is wiped imports nothing."""

    async def scenario() -> None:
        async with database.served() as service:
            await service.imports.begin(Beginning(SOURCE), TESTER)
            await service.operations.wipe()
            assert service.imports.shown is None
            await service.transactor.submit(vocabulary_cases.TraitEnsure("CUSTOM_A"))

    asyncio.run(scenario())


def test_only_the_last_one_that_resumes_writes(database: Database) -> None:
    """Rows, deletions and the end of an older writer are refused; the newer one goes on."""

    async def scenario() -> None:
        source = drawn(random.Random(6))
        rows = rows_of(differences(Ledger(), source))
        async with database.served() as service:
            imports = service.imports
            await imports.begin(Beginning(SOURCE, "old"), TESTER)
            await imports.begin(Beginning(SOURCE, "new", resumes=True), TESTER)
            for writer in ("old", None):
                assert await code_of(imports.write(rows, writer)) is Code.IMPORT_TAKEN
                assert await code_of(imports.finish(TESTER, writer)) is Code.IMPORT_TAKEN
            assert await listed(service) == Ledger()
            await imports.write(rows, "new")
            assert await listed(service) == source
            await imports.finish(TESTER, "new")
            entries, _ = await service.audit.page(None, 10)
            assert [one.action for one in entries] == ["import.finish", "import.begin"]
            resumes = imports.begin(Beginning(SOURCE, "new", resumes=True), TESTER)
            assert await code_of(resumes) is Code.IMPORT_NOT_FOUND

    asyncio.run(scenario())


def test_an_abort_needs_no_name_and_ends_every_writer(database: Database) -> None:
    """Another program has begun: afterwards the ledger is empty, and the writer finds no import."""

    async def scenario() -> None:
        rows = rows_of(differences(Ledger(), drawn(random.Random(7))))
        async with database.served() as service:
            await service.imports.begin(Beginning(SOURCE, "old"), TESTER)
            await service.imports.write(rows, "old")
            await service.imports.abort(TESTER)
            assert await listed(service) == Ledger()
            assert await code_of(service.imports.write(rows, "old")) is Code.IMPORT_NOT_FOUND

    asyncio.run(scenario())
