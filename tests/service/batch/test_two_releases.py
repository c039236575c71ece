"""Two releases on one database: the data of the newer one is kept, and it may exclude the older.

The newer release is simulated: members unknown to this release in every JSON value that it writes
again, an unknown kind of change, and a format that this release does not know.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import apsw
import psycopg
import pytest
from msgspec import json

from moorage.core.admission.calendar.bookings import Booker
from moorage.core.admission.model import Need
from moorage.core.admission.requests import Proof
from moorage.core.admission.templates import TemplateWish
from moorage.core.errors import Code, Error
from moorage.core.fleet.model import Goal
from moorage.core.ids import BookingId, ProviderId
from moorage.core.ledger.inventory import InventorySpec
from moorage.service.admission.booking_cases import BookingAlter, BookingCreate
from moorage.service.admission.lease_cases import LeaseRelease
from moorage.service.admission.template_cases import TemplatePut
from moorage.service.app import Service
from moorage.service.clock import SystemClock
from moorage.service.ledger import provider_cases, vocabulary_cases
from moorage.service.values import time_of
from moorage.store.api import StoreError
from moorage.store.formats import FORMAT
from moorage.store.open import open_engine
from moorage.wire.pools.bookings import BookedUnits, BookingChange, BookingWanted
from tests.service.fleet.machines import PAGES, agent_id, ready, report
from tests.service.pools import MINUTE, ask, pool_put, spec, wish
from tests.service.running import CLASSES, TESTER, TRAITS, claim, fatal
from tests.support import cluster

EXTRA = {"later": [1, {"x": None}]}
"""A member that this release does not know."""

BOOKER, BOOKED = Booker("me", frozenset({"operator"})), BookingId(str(uuid4()))


class Database:
    """A database with direct access, bypassing the service."""

    def __init__(self, url: str) -> None:
        self.url = url

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement with `?` for values; return its rows."""
        if self.url.startswith("sqlite"):
            connection = apsw.Connection(self.url.removeprefix("sqlite:///"))
            try:
                return connection.execute(statement, values).fetchall()
            finally:
                connection.close()
        with psycopg.connect(self.url) as server:
            cursor = server.execute(statement.replace("?", "%s").encode(), values)
            return cursor.fetchall() if cursor.description else []

    async def started(self) -> Service:
        """Start a service of this release."""
        return await Service.start(
            open_engine(self.url), SystemClock(), CLASSES, TRAITS, on_fatal=fatal
        )


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database of either engine."""
    if request.param == "sqlite":
        yield Database(f"sqlite:///{tmp_path}/ledger.sqlite")
    else:
        url = cluster.fresh()
        yield Database(url)
        cluster.shared().drop(cluster.database_of(url))


def template_put(limit: int) -> TemplatePut:
    """Return the case that writes the template."""
    return TemplatePut("made/*", TESTER, TemplateWish(spec(limit), MINUTE, 9), None)


async def store_values(service: Service) -> ProviderId:
    """Store a value of every kind: a provider, pools with leases and a booking, an agent."""
    uuid = ProviderId(str(uuid4()))
    await service.transactor.submit(provider_cases.ProviderCreate(uuid, "host"))
    await service.transactor.submit(
        provider_cases.InventoriesReplace(uuid, 0, {"VCPU": InventorySpec(8)})
    )
    await pool_put(service.admission, "units", spec(limit=5))
    for n in range(2):
        await ask(service.admission, f"first-{n}", "units", units=2)
    alternatives = [[Need("units", 2)], [Need("units", 3)]]
    await service.admission.acquire(wish("any").any_of(alternatives), TESTER)
    await book(service)
    await service.transactor.submit(template_put(limit=1))
    await ready(service.fleet, 1)
    await service.fleet.group_defaults.put("default", {PAGES: Goal(amount=50)}, TESTER)
    return uuid


async def book(service: Service) -> None:
    """Book a unit of another pool for tomorrow."""
    await pool_put(service.admission, "booked", spec(limit=1))
    start = time_of((await service.admission.queries.now()).wall) + timedelta(days=1)
    needs = [BookedUnits(pool="booked", units=1)]
    wanted = BookingWanted(needs=needs, key="b", start=start, end=start + timedelta(hours=1))
    case = BookingCreate(BOOKER, TESTER, BOOKED, "me", wanted)
    await service.admission.calendars.change(case)


async def rewrite_values(service: Service, uuid: ProviderId) -> None:
    """Write each of these values again."""
    await service.transactor.submit(claim(1, uuid, VCPU=3))
    leases, _, _ = await service.admission.queries.leases(None, 10, "units", None)
    for view in leases:
        await service.admission.change(LeaseRelease(view.lease.id, Proof()))
    change = BookingAlter(BOOKER, TESTER, BOOKED, BookingChange(note="why"), frozenset({"booked"}))
    await service.admission.calendars.change(change)
    await service.transactor.submit(template_put(limit=2))
    await service.fleet.report(agent_id(1), report(1, 2, 70), TESTER)
    await service.fleet.group_defaults.put("default", {PAGES: Goal(amount=60)}, TESTER)


def added(text: str, path: tuple[str, ...] = ()) -> str:
    """Add the unknown member to a JSON object, and to objects inside it."""
    value = json.decode(text)
    value.update(EXTRA)
    for name in path:
        for inner in flat(value[name]):
            inner.update(EXTRA)
    return json.encode(value).decode()


def flat(value: Any) -> list[Any]:
    """Return the objects in a value: it is one, or a list of such values, or nothing."""
    if isinstance(value, list):
        return [inner for one in value for inner in flat(one)]
    return [] if value is None else [value]


def write_as_newer(database: Database) -> None:
    """Change all rows as a newer release would."""
    for uuid, text in database.sql("SELECT uuid, inventories FROM provider"):
        held = {name: {**one, **EXTRA} for name, one in json.decode(text).items()}
        database.sql(
            "UPDATE provider SET inventories = ? WHERE uuid = ?", json.encode(held).decode(), uuid
        )
    for uuid, text in database.sql("SELECT uuid, body FROM agent"):
        value = json.decode(text)
        for part in value["parts"].values():
            part.update(EXTRA)
            for managed in part["classes"].values():
                managed.update(EXTRA)
        database.sql("UPDATE agent SET body = ? WHERE uuid = ?", json.encode(value).decode(), uuid)
    for table, key, path in (
        ("pool", "name", ("spec",)),
        ("lease", "id", ("needs", "token", "alternatives")),
        ("booking", "id", ("needs",)),
        ("pool_template", "name", ("spec",)),
        ("agent_group", "name", ()),
        ("agent", "uuid", ("facts",)),
    ):
        for name, text in database.sql(f"SELECT {key}, body FROM {table}"):
            database.sql(f"UPDATE {table} SET body = ? WHERE {key} = ?", added(text, path), name)
    database.sql("UPDATE clock SET newest_version = ?", FORMAT + 1)


def lacking(database: Database, revision: int) -> list[str]:
    """Return the values, stored or in changes after a revision, that lack the unknown member."""
    found = []
    told = "SELECT kind, key, body FROM change WHERE body IS NOT NULL AND revision > ?"
    for kind, key, text in database.sql(told, revision):
        kinds = ("inventory", "pool", "pool_template", "booking", "lease", "agent", "group")
        if kind in kinds and added(text) != whole(text):
            found.append(f"change {kind} {key}")
    for uuid, text in database.sql("SELECT uuid, inventories FROM provider"):
        if any("later" not in one for one in json.decode(text).values()):
            found.append(f"provider {uuid}")
    for table in ("pool", "pool_template"):
        for (text,) in database.sql(f"SELECT body FROM {table}"):
            value = json.decode(text)
            if "later" not in value or "later" not in value["spec"]:
                found.append(f"{table} {text}")
    for (text,) in database.sql("SELECT body FROM booking"):
        value = json.decode(text)
        inner = flat(value["needs"])
        if "later" not in value or any("later" not in one for one in inner):
            found.append(f"booking {text}")
    for (text,) in database.sql("SELECT body FROM lease"):
        value = json.decode(text)
        inner = flat([value["needs"], value["alternatives"]])
        if "later" not in value or any("later" not in one for one in inner):
            found.append(f"lease {text}")
    for (text,) in database.sql("SELECT body FROM agent_group"):
        if "later" not in json.decode(text):
            found.append(f"group {text}")
    for (text,) in database.sql("SELECT body FROM agent"):
        value = json.decode(text)
        (part,) = value["parts"].values()
        parts = (value, value["facts"], part, *part["classes"].values())
        if any("later" not in one for one in parts):
            found.append(f"agent {text}")
    return found


def whole(text: str) -> str:
    """Return a JSON text in its normal form."""
    return json.encode(json.decode(text)).decode()


def rewritten(database: Database) -> list[str]:
    """Let a newer release write, then this one; return which values lack the unknown member."""

    async def scenario() -> int:
        service = await database.started()
        uuid = await store_values(service)
        if not service.engine.shared:
            await service.stop()
        write_as_newer(database)
        ((revision,),) = database.sql("SELECT revision FROM clock")
        if not service.engine.shared:
            service = await database.started()
        await rewrite_values(service, uuid)
        assert await service.operations.check() == []
        await service.stop()
        return int(revision)

    return lacking(database, asyncio.run(scenario()))


def test_members_of_a_newer_release_are_kept(database: Database) -> None:
    """Rows that are written again keep unknown members, and so do their change rows.

    On PostgreSQL the newer release begins while this one is connected.
    """
    assert rewritten(database) == []
    assert database.sql("SELECT COUNT(*) FROM lease WHERE ended_at IS NOT NULL") == [(3,)]
    assert '"used":3' in database.sql("SELECT inventories FROM provider WHERE name = 'host'")[0][0]


def test_without_the_protection_unknown_members_are_lost(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: a service that writes only known members loses the others."""
    for engine in ("sqlite", "postgres"):
        monkeypatch.setattr(f"moorage.store.{engine}.engine.kept", lambda plan: plan)
    assert len(rewritten(database)) > 4


async def refused(awaitable: Awaitable[Any]) -> str:
    """Return the message of the expected `UNAVAILABLE` error."""
    with pytest.raises(Error) as caught:
        await awaitable
    assert caught.value.code is Code.UNAVAILABLE
    return caught.value.message


def test_a_format_that_is_too_new(database: Database) -> None:
    """A running older process writes nothing more, and one that starts asks for an upgrade."""
    raise_ = "UPDATE clock SET minimum_version = ?, newest_version = ?"

    async def scenario() -> None:
        service = await database.started()
        await store_values(service)
        before = database.sql("SELECT * FROM clock")
        if not service.engine.shared:
            await service.stop()
        database.sql(raise_, FORMAT + 1, FORMAT + 1)
        if service.engine.shared:
            said = await refused(
                service.transactor.submit(vocabulary_cases.TraitEnsure("CUSTOM_A"))
            )
            assert f"knows format {FORMAT}: upgrade this process" in said
            assert "upgrade this process" in await refused(service.index.current())
            await service.stop()
        with pytest.raises(StoreError, match=f"needs a release that knows format {FORMAT + 1}"):
            await database.started()
        database.sql(raise_, FORMAT, FORMAT)
        assert database.sql("SELECT * FROM clock") == before

    asyncio.run(scenario())


def test_an_unknown_kind_of_change(database: Database) -> None:
    """It is not skipped: searches and the change feed fail instead."""

    async def scenario() -> None:
        service = await database.started()
        await store_values(service)
        cursor = await service.watch.now()
        ((revision,),) = database.sql("SELECT revision FROM clock")
        database.sql("INSERT INTO change VALUES (?, 0, 0, 'consumer', 'x', '{}')", revision + 1)
        database.sql("INSERT INTO change VALUES (?, 1, 0, 'novelty', 'x', '{}')", revision + 1)
        database.sql("UPDATE clock SET revision = revision + 1")
        assert "'novelty'" in await refused(service.watch.window(cursor))
        if service.engine.shared:
            assert "'novelty'" in await refused(service.index.current())
        database.sql("DELETE FROM change WHERE revision > ?", revision)
        database.sql("UPDATE clock SET revision = revision - 1")
        await service.stop()

    asyncio.run(scenario())
