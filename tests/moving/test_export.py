"""The way out: an exported ledger is an original that answers as the first one."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from moorage.client.transport import Transport
from moorage.integrations.placement.addresses import address_of
from moorage.integrations.placement.capacity_there import not_offered
from moorage.integrations.placement.exporting import Export
from moorage.integrations.placement.judging import single
from moorage.integrations.placement.whole_ledger import WholeLedger
from moorage.wire.providers import InventoryShown
from tests.moving.support import engines
from tests.moving.support.original import Asking, Original
from tests.moving.support.pair import TOKEN, Pair, pair, synced

PROVIDERS, ALLOCATIONS = 30, 120
KILLED_AT = ("1", "7", "20", "commit", "committed")
KILLED = """
import os, signal
from moorage.__main__ import main
from moorage.integrations.placement import target

target.ROWS_AT_ONCE = 5
write, commit = target.Target.write, target.Target.commit
point, parts = os.environ["KILLED_AT"], 0

def end(now):
    if now == point:
        os.kill(os.getpid(), signal.SIGKILL)

def writes(self, table, rows):
    global parts
    for count in write(self, table, rows):
        parts += 1
        end(str(parts))
        yield count

def commits(self):
    end("commit")
    commit(self)
    end("committed")

target.Target.write, target.Target.commit = writes, commits
main()
"""
"""The command, which kills itself after a number of parts of the tables, or beside its commit."""

PARTS = ("", "/inventories", "/usages", "/traits", "/aggregates", "/allocations")
UNUSED = "CUSTOM_MOVED"


@pytest.fixture(scope="module")
def both() -> Iterator[Pair]:
    """An original that was imported."""
    with pair(PROVIDERS, ALLOCATIONS) as found:
        yield found


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_an_exported_ledger_answers_as_the_original_did(
    both: Pair, engine: str, tmp_path: Path
) -> None:
    """Its answers, and what it does next, are those of an original that has always been there."""
    database = synced(engines.fresh(engine, tmp_path))
    said = both.done("export", "placement", "--database", database)
    assert f"exported and checked: 3 classes, 3 traits, {PROVIDERS} providers" in said
    with Original(database) as second:
        compared = both.done(
            *("verify", "placement", "--url", second.url, "--source-token", "admin"),
            *("--database", database, "--candidates", "60"),
        )
        assert "no difference" in compared
        assert _answers(second.url, both) == _answers(both.original.url, both)
        _goes_on(Asking(second.url))


def _answers(url: str, both: Pair) -> dict[str, Any]:
    """Return what an original says about everything, without the order of lists."""
    ask = Asking(url)
    paths = [
        "/resource_providers",
        *("/traits?associated=true", "/traits?name=startswith:CUSTOM_", "/resource_classes"),
        *(f"/resource_providers/{uuid}{part}" for uuid in both.made.providers for part in PARTS),
        *(f"/allocations/{uuid}" for uuid in both.made.consumers),
        "/allocation_candidates?resources=VCPU:1,MEMORY_MB:64",
    ]
    # With types, from 1.38 on, the original fails on PostgreSQL.
    old = Asking(url, version="1.37")
    usages = [f"/usages?project_id={project}" for project in both.made.projects]
    return {path: _sorted(by.get(path)) for by, of in ((ask, paths), (old, usages)) for path in of}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            # MariaDB rounds ratios.
            key: single(of) if key == "allocation_ratio" else _sorted(of)
            for key, of in value.items()
        }
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


def _goes_on(ask: Asking) -> None:
    """Write something of each kind: the original counts on behind the ids that were exported."""
    ask.do("PUT", f"/traits/{UNUSED}")
    ask.do("PUT", f"/resource_classes/{UNUSED}")
    uuid = str(uuid4())
    ask.do("POST", "/resource_providers", {"name": uuid, "uuid": uuid})
    for part, content in (
        ("inventories", {UNUSED: {"total": 4}, "VCPU": {"total": 4}}),
        ("traits", [UNUSED]),
        ("aggregates", [str(uuid4())]),
    ):
        generation = ask.get(f"/resource_providers/{uuid}")["generation"]
        body = {"resource_provider_generation": generation, part: content}
        ask.do("PUT", f"/resource_providers/{uuid}/{part}", body)
    claim = {
        "allocations": {uuid: {"resources": {UNUSED: 1, "VCPU": 2}}},
        **{"project_id": "a new one", "user_id": "a new one", "consumer_type": "NEW"},
        "consumer_generation": None,
    }
    ask.do("PUT", f"/allocations/{uuid4()}", claim)
    assert ask.get(f"/resource_providers/{uuid}/usages")["usages"]["VCPU"] == 2


def test_an_original_that_has_started_once_has_its_standard_names_already(
    both: Pair, tmp_path: Path
) -> None:
    """An original writes them when it starts; the export uses them."""
    with Original(engines.fresh("sqlite", tmp_path)) as second:
        both.done("export", "placement", "--database", second.database)
        assert _answers(second.url, both) == _answers(both.original.url, both)


def test_a_complete_export_is_recognised_and_another_content_is_refused(
    both: Pair, tmp_path: Path
) -> None:
    """The same command again says that all is done; anything else in it is somebody's."""
    database = synced(engines.fresh("sqlite", tmp_path))
    both.done("export", "placement", "--database", database)
    again = both.done("export", "placement", "--database", database)
    assert again.startswith("already exported, and the same: 3 classes")
    _run(database, "UPDATE allocations SET used = used + 1 WHERE id = 7")
    refused = both.moorage("export", "placement", "--database", database)
    assert refused.returncode == 1
    assert "is not empty: " in refused.stderr
    assert "allocations" in refused.stderr
    assert _count(database, "allocations") > 0


@pytest.mark.parametrize("head", ["422ece571366", "strange", None])
def test_another_schema_is_refused_by_name(both: Pair, head: str | None, tmp_path: Path) -> None:
    """Only the schema that this release knows as the newest one is written."""
    database = synced(engines.fresh("sqlite", tmp_path))
    _run(database, "DELETE FROM alembic_version")
    if head is not None:
        _run(database, f"INSERT INTO alembic_version VALUES ('{head}')")
    refused = both.moorage("export", "placement", "--database", database)
    assert refused.returncode == 1
    assert f"it has {head or 'none'}: let `placement-manage db sync`" in refused.stderr
    assert _count(database, "resource_providers") == 0


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_a_killed_export_leaves_nothing_and_is_begun_again(
    both: Pair, engine: str, tmp_path: Path
) -> None:
    """Everything is one transaction, whenever the kill comes."""
    database = synced(engines.fresh(engine, tmp_path))
    words = ["export", "placement", "--database", database]
    for point in KILLED_AT:
        environment = {**both.environment, "KILLED_AT": point}
        command = [sys.executable, "-c", KILLED, *words]
        killed = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        whole = point == "committed"
        assert _count(database, "resource_providers") == (PROVIDERS if whole else 0)
        assert _count(database, "consumers") == (len(both.made.consumers) if whole else 0)
    assert both.done(*words).startswith("already exported, and the same: ")


MEDDLED = """
import os
import sqlalchemy as sa
from moorage.__main__ import main
from moorage.integrations.placement import target

commit = target.Target.commit

def commits(self):
    with sa.create_engine(os.environ["MEDDLED"]).begin() as other:
        other.execute(sa.text("INSERT INTO users (id, external_id) VALUES (999999, 'somebody')"))
    commit(self)

target.Target.commit = commits
main()
"""
"""The command; another program writes a row to the same database before it commits."""


@pytest.mark.parametrize("engine", ["mariadb", "postgresql"])
def test_a_database_that_others_write_to_is_noticed(
    both: Pair, engine: str, tmp_path: Path
) -> None:
    """Such as an original that runs on it already: the export cannot see its rows."""
    database = synced(engines.fresh(engine, tmp_path))
    url = address_of(database).render_as_string(hide_password=False)
    words = ["export", "placement", "--database", database]
    meddled = subprocess.run(
        [sys.executable, "-c", MEDDLED, *words],
        env={**both.environment, "MEDDLED": url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert meddled.returncode == 1, meddled.stdout
    assert "another program has written to it" in meddled.stderr


def test_a_ledger_that_changes_is_not_exported(both: Pair, tmp_path: Path) -> None:
    """Neither readings nor the result may mix two states; a trial may be of an older one."""
    database = synced(engines.fresh("sqlite", tmp_path))
    stop = threading.Event()
    begun = threading.Event()

    uuid = both.made.homes[1][0]
    path = f"/resource_providers/{uuid}"
    before = Asking(both.server.url).get(path)["name"]

    def write() -> None:
        ask = Asking(both.server.url)
        number = 0
        while not stop.is_set():
            ask.do("PUT", path, {"name": f"renamed {number}"})
            begun.set()
            number += 1
        ask.do("PUT", path, {"name": before})

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            assert begun.wait(30)
            refused = both.moorage("export", "placement", "--database", database, "--json")
        finally:
            stop.set()
        writing.result()
    assert refused.returncode == 4
    assert json.loads(refused.stderr)["error"]["code"] == "ledger_changes"
    assert _count(database, "resource_providers") == 0
    both.done("export", "placement", "--database", database)


def test_capacity_that_is_not_offered_is_reserved_in_the_original(
    both: Pair, tmp_path: Path
) -> None:
    """Nothing more fits there than in Moorage, and the report says so."""
    root = both.made.homes[0][0]
    ours = Asking(both.server.url)
    ours.do("POST", f"/v1/providers/{root}/drain", {"reason": "repaired"})
    try:
        database = synced(engines.fresh("sqlite", tmp_path))
        said = both.done("export", "placement", "--database", database)
        assert "written as reserved, because it is not offered" in said
        assert f"VCPU of {root}" in said
        with Original(database) as second:
            inventories = Asking(second.url).get(f"/resource_providers/{root}/inventories")
            shown = inventories["inventories"]["VCPU"]
            assert shown["reserved"] == shown["total"]
            verified = both.moorage(
                *("verify", "placement", "--url", second.url, "--source-token", "admin"),
                *("--candidates", "120", "--json"),
            )
        kinds = {one["kind"] for one in json.loads(verified.stdout)["differences"]}
        assert kinds == {
            "provider inventories: /inventories/{name}/reserved",
            "inventory: /reserved",
        }
    finally:
        ours.do("POST", f"/v1/providers/{root}/resume", {})


def test_names_that_a_database_takes_for_the_same_are_refused(both: Pair, tmp_path: Path) -> None:
    """Nothing is lost silently: the message names the table."""
    ours = Asking(both.server.url)
    uuids = [str(uuid4()), str(uuid4())]
    for uuid, name in zip(uuids, ("Twin", "twin"), strict=True):
        ours.do("POST", "/resource_providers", {"name": name, "uuid": uuid})
    try:
        database = synced(engines.fresh("mariadb", tmp_path))
        refused = both.moorage("export", "placement", "--database", database)
        assert refused.returncode == 1
        assert "cannot hold two rows of resource_providers" in refused.stderr
        assert "twin" in refused.stderr.lower()
        assert _count(database, "projects") == 0
    finally:
        for uuid in uuids:
            ours.do("DELETE", f"/resource_providers/{uuid}")


def test_no_connection_waits_while_the_ledger_is_read(both: Pair, tmp_path: Path) -> None:
    """Databases and proxies cut connections that are idle, and a large ledger takes minutes."""
    empty = synced(engines.fresh("mariadb", tmp_path))
    name = str(address_of(empty).database)
    listed = f"SELECT id FROM information_schema.processlist WHERE db = '{name}'"
    read: list[str] = []

    def cut(what: str, done: int, total: int) -> None:
        if what == "reading Moorage":
            read.append(what)
            for (number,) in engines.mariadb().run(listed):
                engines.mariadb().run(f"KILL {number}")

    ledger = WholeLedger(Transport(both.server.url, TOKEN))
    done = Export(ledger, cut).run(address_of(empty))
    assert read
    assert done.rows["providers"] == PROVIDERS


@pytest.mark.parametrize(
    ("ratio", "kept"),
    [(1.0, 1.0), (1.1, 1.1), (16.0, 16.0), (0.9, 0.9), (1.123456789, 1.12346), (1 / 3, 0.333333)],
)
def test_a_ratio_in_single_precision_is_what_mariadb_shows(ratio: float, kept: float) -> None:
    """Six digits of what single precision holds."""
    assert single(ratio) == kept


@pytest.mark.parametrize(
    ("total", "reserved", "offered", "withheld", "closed"),
    [
        (10, 2, None, False, 0),
        (10, 2, 10, False, 0),
        (10, 2, 12, False, 0),
        (10, 2, 7, False, 3),
        (10, 2, 1, False, 8),
        (10, 2, None, True, 8),
        (10, 12, None, True, 0),
    ],
)
def test_what_is_not_offered_follows_the_rule_of_capacity(
    total: int, reserved: int, offered: int | None, withheld: bool, closed: int
) -> None:
    """As `core.ledger.capacity.capacity_of`."""
    inventory = InventoryShown(
        total=total,
        reserved=reserved,
        min_unit=1,
        max_unit=100,
        step_size=1,
        allocation_ratio=1.5,
        offered=offered,
        used=0,
        capacity=0,
        free=0,
    )
    assert not_offered(inventory, withheld=withheld) == closed


def _engine(database: str) -> sa.Engine:
    return sa.create_engine(address_of(database), poolclass=sa.pool.NullPool)


def _run(database: str, statement: str) -> None:
    with _engine(database).begin() as connection:
        connection.execute(sa.text(statement))


def _count(database: str, table: str) -> int:
    with _engine(database).connect() as connection:
        return int(connection.scalar(sa.text(f"SELECT count(*) FROM {table}")) or 0)
