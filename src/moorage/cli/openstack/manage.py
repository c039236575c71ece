"""`placement-manage`: migrates Moorage's own database, with the original's options and exit codes.

It never opens the database of `[placement_database]`.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable

from moorage.cli.openstack.arguments import parser_of
from moorage.cli.openstack.configuration import database_of, fail, files_of, loaded
from moorage.cli.openstack.tables import centred
from moorage.store.api import Locked, StoreError
from moorage.store.open import open_engine, schema_of

PROGRAM = "placement-manage"
HEAD = "head"

INVALID = 127
"""Exit code for a wrong --max-count."""

INCOMPLETE = 2
"""Exit code if a migration has failed."""

BATCH = 50
"""What the original does at a time; here it is only printed."""

MIGRATIONS = ("set_root_provider_ids", "create_incomplete_consumers")
"""The original's migrations. In our ledger every provider has a root, and every consumer a record:
there is nothing that they could find."""


def main() -> None:
    """Run the program and exit."""
    parser, db = _parsers()
    asked = parser.parse_args()
    settings = loaded(PROGRAM, files_of(PROGRAM, asked.files))
    database = database_of(PROGRAM, settings)
    if asked.group is None:
        parser.print_help()
        sys.exit(1)
    if asked.command is None:
        db.print_help()
        sys.exit(0)
    commands: dict[str, Callable[[], int]] = {
        "sync": lambda: sync(database),
        "version": lambda: version(database),
        "stamp": lambda: stamp(database, asked.version_asked),
        "online_data_migrations": lambda: online_data_migrations(database, asked.max_count),
    }
    try:
        code = commands[asked.command]()
    except StoreError as error:
        fail(PROGRAM, error)
    sys.exit(code)


def _parsers() -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    parser = parser_of(PROGRAM, version=True)
    groups = parser.add_subparsers(title="Command", dest="group", metavar="{db}")
    db = groups.add_parser("db", help="Available DB commands")
    commands = db.add_subparsers(dest="command", description="database commands")
    for name, meaning in (
        ("sync", "Sync the database to the current version."),
        ("version", "Report the current database version."),
        ("stamp", "Stamp the revision table with the given version."),
        ("online_data_migrations", "Run the online data migrations."),
    ):
        command = commands.add_parser(name, help=meaning, description=meaning)
        if name == "stamp":
            command.add_argument("version_asked", metavar="version", help="the version to stamp")
        elif name == "online_data_migrations":
            command.add_argument(
                "--max-count", metavar="<number>", help="Maximum number of objects to consider"
            )
    return parser, db


def sync(database: str) -> int:
    """Apply the missing migrations. A server that has the file applies them when it starts."""
    try:
        asyncio.run(open_engine(database).close())
    except Locked:
        schema = schema_of(database)
        if not schema.is_current:
            _warn(
                f"a server is using the database, which has {schema.applied}; it will have"
                f" {schema.newest} when the server is started again"
            )
    return 0


def version(database: str) -> int:
    """Print the newest migration of the database; None if there is none."""
    _say(schema_of(database).applied)
    return 0


def stamp(database: str, asked: str) -> int:
    """Accept the version that the database has: our migrations cannot be skipped."""
    schema = schema_of(database)
    if asked == schema.applied or (asked == HEAD and schema.is_current):
        return 0
    _warn(
        f"the database has {schema.applied}, and migrations cannot be skipped: run"
        f" `{PROGRAM} db sync`"
    )
    return 1


def online_data_migrations(database: str, max_count: str | None) -> int:
    """Report that there is nothing to migrate; 2 if the database has no current schema."""
    if max_count is None:
        _say(f"Running batches of {BATCH} until complete")
    elif not _is_positive(max_count):
        _say("Must supply a positive value for max_count")
        return INVALID
    schema = schema_of(database)
    _say(centred(["Migration", "Total Found", "Completed"], [[m, "0", "0"] for m in MIGRATIONS]))
    if schema.is_current:
        return 0
    _say("Some migrations failed unexpectedly. Check log for details.")
    _warn(f"the database has {schema.applied}; run `{PROGRAM} db sync` first")
    return INCOMPLETE


def _is_positive(text: str) -> bool:
    try:
        return int(text) > 0
    except ValueError:
        return False


def _say(text: object) -> None:
    print(text)  # noqa: T201 - the output of the program


def _warn(text: str) -> None:
    print(f"{PROGRAM}: {text}", file=sys.stderr)  # noqa: T201 - the output of the program
