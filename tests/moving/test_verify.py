"""The comparison side by side: nothing differs after an import; what is planted is found."""

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from moorage.client.imports import Imports
from moorage.client.transport import Transport
from tests.e2e.support.server import serve
from tests.moving.support.original import Asking
from tests.moving.support.pair import TOKEN, Pair, pair
from tests.proxies.nginx import Nginx

ROOT = Path(__file__).resolve().parents[2]
NGINX = ROOT / ".nginx/nginx"
PROVIDERS, ALLOCATIONS = 30, 120

OF = "(SELECT id FROM resource_providers WHERE uuid = '{}')"
VCPU = "(SELECT id FROM resource_classes WHERE name = 'VCPU')"
FIRST_PLANTED = "99999999-9999-4999-8999-999999999999"

PLANTED = (
    ("UPDATE resource_providers SET name = 'another' WHERE uuid = '{0}'", "provider: /name"),
    (
        "UPDATE resource_providers SET generation = generation + 1 WHERE uuid = '{1}'",
        "provider: /generation",
    ),
    (
        "UPDATE resource_providers SET parent_provider_id = NULL, root_provider_id = id"
        " WHERE uuid = '{4}'",
        "provider: /parent_provider_uuid",
    ),
    (
        "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id,"
        f" created_at) VALUES (9000, '{FIRST_PLANTED}', 'p', 0, 9000, '2026-01-01 00:00:00')",
        "providers: /resource_providers/{uuid}",
    ),
    (
        "UPDATE inventories SET total = total + 1 WHERE resource_provider_id ="
        f" {OF.format('{0}')} AND resource_class_id = {VCPU}",
        "provider inventories: /inventories/{name}/total",
    ),
    (
        "UPDATE inventories SET min_unit = 2, max_unit = 1 WHERE resource_provider_id ="
        f" {OF.format('{2}')}",
        "provider inventories: /inventories/{name}/min_unit",
    ),
    (
        "UPDATE inventories SET updated_at = '2001-01-01 00:00:00', created_at ="
        f" '2001-01-01 00:00:00' WHERE resource_provider_id = {OF.format('{3}')}",
        "provider inventories: last-modified",
    ),
    ("DELETE FROM resource_provider_traits", "provider traits: /traits/{name}"),
    ("DELETE FROM resource_provider_aggregates", "provider aggregates: /aggregates/{uuid}"),
    (
        "UPDATE allocations SET used = used + 1 WHERE id = 1",
        "consumer: /allocations/{uuid}/resources/{name}",
    ),
    (
        "UPDATE consumers SET generation = generation + 1 WHERE id = 2",
        "consumer: /consumer_generation",
    ),
    ("UPDATE consumers SET project_id = project_id + 1 WHERE id = 3", "consumer: /project_id"),
    (
        "INSERT INTO traits (name, created_at) VALUES ('CUSTOM_PLANTED', '2026-01-01 00:00:00')",
        "traits: /traits/{name}",
    ),
    (
        "INSERT INTO resource_classes (id, name, created_at) VALUES"
        " (20000, 'CUSTOM_PLANTED', '2026-01-01 00:00:00')",
        "resource classes: /resource_classes/{name}",
    ),
)
"""What is changed in the original's database, and a kind of difference that must be found."""

FOLLOWING = (
    *("provider usages: /usages/{name}", "provider allocations: /allocations/{uuid}/resources"),
    *("candidates: only of Moorage", "project usages: /usages", "user usages: /usages"),
    *("candidates: provider_summaries", "tree: /resource_providers", "inventory: /"),
)
"""The beginnings of kinds that follow from what is planted."""

PLANTED_ROWS = (
    *("row of providers: name", "row of providers: generation", "row of providers: parent"),
    *("row of providers: only of the original", "row of providers: inventories/{name}/total"),
    *("row of providers: traits/{name}", "row of providers: aggregates/{uuid}"),
    *("row of consumers: allocations/{uuid}/{name}", "row of consumers: generation"),
    *("row of consumers: project", "row of traits: only of the original"),
    "row of classes: only of the original",
)


@pytest.fixture(scope="module")
def both() -> Iterator[Pair]:
    """An original that was imported; its differences are planted last."""
    with pair(PROVIDERS, ALLOCATIONS) as found:
        yield found


def _verified(both: Pair, *options: str) -> tuple[int, Any]:
    words = ("verify", "placement", "--url", both.original.url, "--source-token", "admin")
    done = both.moorage(*words, "--json", *options)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_nothing_differs_after_an_import(both: Pair) -> None:
    """All kinds of requests are compared, and enough of them are answered."""
    code, said = _verified(both, "--database", both.original.database)
    assert (code, said["differences"]) == (0, [])
    assert said["same"] is True
    assert said["compared"]["candidates"] == 200
    assert said["compared"]["consumers"] == len(both.made.consumers)
    assert said["compared"]["rows"] > PROVIDERS
    assert said["refused_by_both"] == 0
    assert {one["known"] for one in said["known"]} <= {"Times of standard names"}


def test_a_sample_is_smaller_than_all(both: Pair) -> None:
    """Its size is the operator's choice."""
    options = ("--providers", "5", "--consumers", "4", "--candidates", "3", "--seed", "9")
    code, said = _verified(both, *options)
    assert code == 0
    assert said["compared"]["consumers"] == 4
    assert said["compared"]["candidates"] == 3
    assert said["compared"]["providers"] <= 5 * 8


def test_differences_of_a_moment_do_not_count(both: Pair) -> None:
    """Clients write to both, one after the other: the second look finds them equal."""
    stop = threading.Event()

    def write() -> int:
        sides = [Asking(both.original.url), Asking(both.server.url)]
        written = 0
        while not stop.is_set():
            root = both.made.homes[written % len(both.made.homes)][0]
            for ask in sides:
                shown = ask.get(f"/resource_providers/{root}/traits")
                traits = sorted({*shown["traits"], "CUSTOM_GOLD"})
                if written // len(both.made.homes) % 2:
                    traits.remove("CUSTOM_GOLD")
                generation = shown["resource_provider_generation"]
                body = {"traits": traits, "resource_provider_generation": generation}
                ask.do("PUT", f"/resource_providers/{root}/traits", body)
            written += 1
        return written

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            code, said = _verified(both, "--candidates", "30", "--seconds", "60")
        finally:
            stop.set()
        assert writing.result() > len(both.made.homes)
    assert (code, said["differences"]) == (0, [])


def test_what_is_no_placement_is_named(both: Pair) -> None:
    """A wrong address or token is no difference."""
    wrong = both.moorage("verify", "placement", "--url", f"{both.server.url}/v1/pools")
    assert wrong.returncode == 1
    assert "is not a Placement API" in wrong.stderr
    unknown = both.moorage("verify", "placement", "--url", both.original.url)
    assert unknown.returncode == 1
    assert "answers 401 to GET /resource_providers" in unknown.stderr
    neither = both.moorage("verify", "placement")
    assert neither.returncode == 2


def test_a_token_that_expires_meanwhile_is_no_difference(
    both: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy stands before the original, which refuses the token from the first consumer on."""
    monkeypatch.setenv("NGINX_PROGRAM", os.environ.get("NGINX_PROGRAM", str(NGINX)))
    locations = "location /allocations/ { return 401; } location / { proxy_pass http://UPSTREAM; }"
    with Nginx(tmp_path / "nginx", both.original.url, locations) as proxy:
        words = ("verify", "placement", "--url", proxy.url, "--source-token", "admin")
        done = both.moorage(*words, "--providers", "3")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{proxy.url} answers 401 to GET /allocations/" in done.stderr
    assert "its token is not valid any longer" in done.stderr


def test_during_an_import_only_rows_are_compared(both: Pair, tmp_path: Path) -> None:
    """The Placement API of a ledger that is being imported answers nobody."""
    with serve(tmp_path / "moorage.db", "--auth", "noauth2") as server:
        Imports(Transport(server.url, TOKEN)).begin("a source")
        other = Pair(both.original, server, both.made)
        options = ("--url", both.original.url, "--source-token", "admin")
        refused = other.moorage("verify", "placement", *options)
        assert refused.returncode == 1
        assert "a source is being imported" in refused.stderr
        words = ("verify", "placement", "--database", both.original.database, "--json")
        compared = other.moorage(*words)
        kinds = {one["kind"] for one in json.loads(compared.stdout)["differences"]}
        assert "row of providers: only of the original" in kinds


def test_every_planted_difference_is_found(both: Pair) -> None:
    """The control: one change of each kind in the original's database."""
    file = both.original.database.removeprefix("sqlite:///")
    places = [*(root for root, _ in both.made.homes[:4]), both.made.homes[4][1]]
    both.original.stop()
    with sqlite3.connect(file) as connection:
        for statement, _ in PLANTED:
            assert connection.execute(statement.format(*places)).rowcount > 0, statement
    connection.close()
    both.original.start()
    code, said = _verified(both, "--database", both.original.database)
    assert code == 1
    kinds = {one["kind"] for one in said["differences"]}
    expected = {kind for _, kind in PLANTED}
    assert not expected - kinds, sorted(expected - kinds)
    assert not set(PLANTED_ROWS) - kinds, sorted(set(PLANTED_ROWS) - kinds)
    missing = [one for one in FOLLOWING if not any(kind.startswith(one) for kind in kinds)]
    assert not missing, sorted(kinds)
    examples = {one["kind"]: one["example"] for one in said["differences"]}
    named = examples["providers: /resource_providers/{uuid}"]
    assert named["at"] == f"/resource_providers/{FIRST_PLANTED}"
    assert named["moorage"] == "(absent)"
    text = both.moorage(
        *("verify", "placement", "--url", both.original.url, "--source-token", "admin"),
        *("--providers", "10", "--consumers", "0", "--candidates", "0"),
    )
    assert text.returncode == 1
    assert "different: traits: /traits/{name}: " in text.stdout


def test_a_provider_that_only_one_has_is_asked_about_by_both(both: Pair) -> None:
    """The sample is of the providers of both sides."""
    ours = Asking(both.server.url)
    uuid = str(uuid4())
    ours.do("POST", "/resource_providers", {"name": uuid, "uuid": uuid})
    _, said = _verified(both, "--candidates", "0", "--consumers", "0")
    kinds = {one["kind"] for one in said["differences"]}
    assert "provider: status" in kinds
