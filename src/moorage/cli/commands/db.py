"""`moorage db`: database maintenance."""

import os
from datetime import UTC, datetime

import click

from moorage.cli.support.command import administering, administration, database_url
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import FAILED, USAGE, Failure, say, say_or_json, show_json
from moorage.core.counting import counted


@click.group("db")
def group() -> None:
    """Migrate, check, back up and restore the database."""


@group.command(epilog=example("moorage db migrate --database sqlite:////var/lib/moorage/m.sqlite"))
@administering
@json_option
def migrate(as_json: bool) -> None:
    """Upgrade the schema of a database that is not in use; create the database if it is missing."""
    import asyncio

    from moorage.store.api import StoreError
    from moorage.store.open import open_engine

    try:
        engine = open_engine(database_url())
        path = engine.name.split(" ", 1)[1]
        asyncio.run(engine.close())
    except StoreError as error:
        raise Failure(USAGE, str(error)) from None
    say_or_json(
        as_json, {"database": path, "schema": "current"}, f"{path} has the schema of this release"
    )


@group.command(epilog=example("moorage db check"))
@administering
@json_option
def check(as_json: bool) -> None:
    """Recompute every sum, generation and tree, and print every difference; exit code 1 if any."""
    differences = administration().check()
    if as_json:
        show_json({"differences": differences})
    else:
        for difference in differences:
            say(difference)
        say(counted(len(differences), "difference"), err=True)
    if differences:
        click.get_current_context().exit(FAILED)


@group.command(
    epilog=example(
        "moorage db backup /backup/moorage-monday.sqlite",
        "moorage db backup --folder /backup --keep 14",
    )
)
@administering
@click.argument("target", type=click.Path(), metavar="[FILE]", required=False)
@click.option(
    "--folder",
    type=click.Path(),
    help="Instead of FILE: write moorage-TIME.sqlite into this folder, which is only for this"
    " database.",
)
@click.option(
    "--keep",
    type=click.IntRange(1, 10_000),
    metavar="NUMBER",
    help="With --folder: after a successful backup, delete all but this many of the newest backups"
    " there.",
)
@json_option
def backup(target: str | None, folder: str | None, keep: int | None, as_json: bool) -> None:
    """Write a complete copy of the database to the new FILE, also while a server is running.

    With the --url of another database's server, FILE is a name, and that server writes the copy
    into its backup_directory.
    """
    if (target is None) == (folder is None):
        raise Failure(USAGE, "give either FILE or --folder")
    if folder is None:
        if keep is not None:
            raise Failure(USAGE, "--keep needs --folder")
        path = administration().backup(str(target))
        say_or_json(as_json, {"path": path}, f"wrote {path}")
        return
    _backup_into(folder, keep, as_json)


def _backup_into(folder: str, keep: int | None, as_json: bool) -> None:
    """Write a backup that is named after the time, and delete older ones. Raises Failure."""
    from moorage.cli.support.backup_folder import Thinned, backup_name, thinned

    def name_now() -> str:
        return backup_name(datetime.now(UTC))  # noqa: TID251 - the machine's own clock is meant

    if not os.path.isdir(folder):
        raise Failure(USAGE, f"--folder: {folder} is no folder")
    name = name_now()
    path = administration().backup(os.path.join(folder, name))
    if not as_json:
        say(f"wrote {path}")
    found = Thinned([], []) if keep is None else thinned(folder, keep, name, name_now())
    if as_json:
        show_json({"path": path, "deleted": found.deleted})
    else:
        for gone in found.deleted:
            say(f"deleted {gone}")
    if found.problems:
        raise Failure(FAILED, "the backup is complete, but " + "; ".join(found.problems))


@group.command(epilog=example("moorage db restore /backup/moorage-monday.sqlite"))
@administering
@click.argument("source", type=click.Path(), metavar="FILE")
@json_option
def restore(source: str, as_json: bool) -> None:
    """Replace a database that is not in use with the backup FILE; the old one is kept."""
    from moorage.cli.support.database import DatabaseBackend  # deferred: it loads the whole service
    from moorage.store.addresses import sqlite_path
    from moorage.store.api import StoreError
    from moorage.store.open import restore as restore_database

    try:
        kept = restore_database(database_url(), os.path.abspath(source))
        path = sqlite_path(database_url())
    except StoreError as error:
        raise Failure(USAGE, str(error)) from None
    DatabaseBackend(database_url()).restored(os.path.abspath(source), kept)
    say_or_json(
        as_json,
        {"database": path, "kept": kept},
        f"restored {path}" + (f"; the old database is kept as {kept}" if kept else ""),
    )


@group.group("epoch")
def epoch_group() -> None:
    """Begin a new epoch after a restore."""


@epoch_group.command("raise", epilog=example("moorage db epoch raise"))
@administering
@json_option
def epoch_raise(as_json: bool) -> None:
    """Begin a new epoch; run it after every restore that `moorage db restore` did not make."""
    raised = administration().epoch_raise()
    say_or_json(
        as_json, raised, f"epoch {raised['epoch']} begins after revision {raised['revision']}"
    )
