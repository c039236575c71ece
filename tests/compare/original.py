"""The original, openstack-placement, as a separate process: one thread, SQLite, `noauth2`.

It runs in the environment that contains the original (`.venv-conformance`) and needs nothing else
of this project:

    python tests/compare/original.py FOLDER

It prints one line with its URL and serves until a signal arrives. Three addresses are not the
original's: `POST /_original/reset` restores the empty database, `GET /_original/generations`
returns the generations of its providers and consumers, so that the next request can name them, and
`POST /_original/orphans` removes the consumers that its refused requests have left behind.
"""

import contextlib
import io
import json
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from wsgiref.handlers import SimpleHandler
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import jsonschema
from placement import wsgi

SETTINGS = """\
[api]
auth_strategy = noauth2
[placement_database]
connection = sqlite:///{database}
sync_on_startup = true
sqlite_synchronous = false
[oslo_policy]
enforce_scope = true
[DEFAULT]
log_file = {log}
default_log_levels = placement=WARNING,alembic=WARNING
"""
GENERATIONS = {
    "providers": "SELECT uuid, generation FROM resource_providers",
    "consumers": "SELECT uuid, generation FROM consumers",
}
OFFERS = """
SELECT uuid, resource_classes.name FROM inventories
JOIN resource_providers ON resource_providers.id = resource_provider_id
JOIN resource_classes ON resource_classes.id = resource_class_id
"""
FREE = {
    "/resource_providers/{provider}": """
        SELECT uuid FROM resource_providers
        WHERE id NOT IN (SELECT resource_provider_id FROM allocations)
        AND id NOT IN (
            SELECT parent_provider_id FROM resource_providers WHERE parent_provider_id IS NOT NULL
        )
    """,
    "/resource_providers/{provider}/inventories": """
        SELECT DISTINCT uuid FROM inventories
        JOIN resource_providers ON resource_providers.id = resource_provider_id
        WHERE resource_provider_id NOT IN (SELECT resource_provider_id FROM allocations)
    """,
    "/resource_providers/{provider}/inventories/{class}": """
        SELECT uuid, resource_classes.name FROM inventories
        JOIN resource_providers ON resource_providers.id = resource_provider_id
        JOIN resource_classes ON resource_classes.id = resource_class_id
        WHERE NOT EXISTS (
            SELECT 1 FROM allocations
            WHERE allocations.resource_provider_id = inventories.resource_provider_id
            AND allocations.resource_class_id = inventories.resource_class_id
        )
    """,
    "/resource_classes/{class}": """
        SELECT name FROM resource_classes
        WHERE name LIKE 'CUSTOM%' AND id NOT IN (SELECT resource_class_id FROM inventories)
    """,
    "/traits/{trait}": """
        SELECT name FROM traits
        WHERE name LIKE 'CUSTOM%' AND id NOT IN (SELECT trait_id FROM resource_provider_traits)
    """,
    "/allocations/{consumer}": "SELECT DISTINCT consumer_id FROM allocations",
}
"""For each route, a query for the path names of objects that a DELETE would remove."""

ONE_BEGINNING = """
UPDATE resource_classes SET created_at = (SELECT max(created_at) FROM traits)
"""
ORPHANS = "FROM consumers WHERE uuid NOT IN (SELECT consumer_id FROM allocations)"

Application = Callable[..., Any]

LINE_MAX = 65_537


class Database:
    """The original's SQLite file, and a copy of it from before the first request."""

    def __init__(self, file: Path) -> None:
        self._live = sqlite3.connect(file)
        with self._live:
            self._live.execute(ONE_BEGINNING)
        self._empty = sqlite3.connect(":memory:")
        self._live.backup(self._empty)

    def reset(self) -> None:
        """Restore the copy; open connections see it at their next statement."""
        self._empty.backup(self._live)

    def generations(self) -> dict[str, dict[str, Any]]:
        """Return all generations, the classes that providers offer, and the removable objects."""
        with contextlib.closing(self._live.cursor()) as cursor:
            found: dict[str, dict[str, Any]] = {
                what: dict(cursor.execute(sql)) for what, sql in GENERATIONS.items()
            }
            found["offers"] = {uuid: [] for uuid in found["providers"]}
            for uuid, name in cursor.execute(OFFERS):
                found["offers"][uuid].append(name)
            found["free"] = {route: sorted(cursor.execute(sql)) for route, sql in FREE.items()}
        return found

    def forget_orphans(self) -> list[str]:
        """Remove and return the consumers without allocations."""
        with self._live:
            found = [uuid for (uuid,) in self._live.execute(f"SELECT uuid {ORPHANS}")]
            self._live.execute(f"DELETE {ORPHANS}")
        return found


def with_reset(application: Application, database: Database) -> Application:
    """Add the addresses that are not the original's."""
    acts: dict[str, Callable[[], Any]] = {
        "/_original/reset": database.reset,
        "/_original/generations": database.generations,
        "/_original/orphans": database.forget_orphans,
    }

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        act = acts.get(environ["PATH_INFO"])
        if act is None:
            return application(environ, start)
        body = json.dumps(act()).encode()
        start("200 OK", [("content-length", str(len(body)))])
        return [body]

    return answer


def check_schemas_once() -> None:
    """Make jsonschema check each schema once instead of at every request, to save half of the time.

    The answers stay the same, because the schemas are constants of the original.
    """
    for kind in (jsonschema.Draft4Validator, jsonschema.Draft202012Validator):
        kind.check_schema = cache_by_identity(kind.check_schema)


def cache_by_identity(check: Callable[..., None]) -> Callable[..., None]:
    """Return a check that does nothing when it gets the same object again."""
    seen: dict[int, Any] = {}

    def checked(schema: Any, *more: Any, **others: Any) -> None:
        if id(schema) not in seen:
            check(schema, *more, **others)
            seen[id(schema)] = schema

    return checked


class Response(SimpleHandler):
    """One answer on a connection that stays open."""

    http_version = "1.1"


class Connection(WSGIRequestHandler):
    """The requests of one connection, one after another."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: WSGIServer

    def handle(self) -> None:
        """Answer until the client closes; read each body completely, so that nothing is left."""
        self.close_connection = False
        while not self.close_connection:
            self.raw_requestline = self.rfile.readline(LINE_MAX)
            if not self.raw_requestline or not self.parse_request():
                return
            length = self.headers.get("content-length") or "0"
            body = io.BytesIO(self.rfile.read(int(length) if length.isdigit() else 0))
            response = Response(body, self.wfile, sys.stderr, self.get_environ(), False)
            response.run(self.server.get_app())
            self.wfile.flush()

    def get_environ(self) -> dict[str, Any]:
        """Make an absent content type empty, as in uwsgi and mod_wsgi; wsgiref sets a default."""
        environ: dict[str, Any] = super().get_environ()
        environ["CONTENT_TYPE"] = self.headers.get("content-type") or ""
        return environ


def main(folder: Path) -> None:
    """Serve on a free port of 127.0.0.1."""
    file = folder / "placement.db"
    settings = folder / "placement.conf"
    settings.write_text(SETTINGS.format(database=file, log=folder / "placement.log"))
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = str(folder)
    check_schemas_once()
    application = wsgi.init_application()
    with WSGIServer(("127.0.0.1", 0), Connection) as server:
        server.set_app(with_reset(application, Database(file)))
        sys.stdout.write(f"original: serving http://127.0.0.1:{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
