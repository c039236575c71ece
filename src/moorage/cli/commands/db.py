"""`moorage db`: looking after the database."""

import asyncio
import os

import click

from moorage.cli.support.command import administering, administration, database_url
from moorage.cli.support.options import json_option
from moorage.cli.support.output import FAILED, USAGE, Failure, say, show_json
from moorage.core.counting import counted


@click.group("db")
def group() -> None:
    """Migrate, check, back up and restore the database."""


@group.command()
@administering
@json_option
def migrate(as_json: bool) -> None:
    """Bring the schema of a database that is not in use up to this release; made if missing."""
    from moorage.store.api import StoreError
    from moorage.store.open import open_engine

    try:
        engine = open_engine(database_url())
        path = engine.name.split(" ", 1)[1]
        asyncio.run(engine.close())
    except StoreError as error:
        raise Failure(USAGE, str(error)) from None
    if as_json:
        show_json({"database": path, "schema": "current"})
    else:
        say(f"{path} has the schema of this release")


@group.command()
@administering
@json_option
def check(as_json: bool) -> None:
    """Derive every sum, generation and tree anew and report what differs; 1 if anything does."""
    differences = administration().check()
    if as_json:
        show_json({"differences": differences})
    else:
        for difference in differences:
            say(difference)
        say(counted(len(differences), "difference"), err=True)
    if differences:
        click.get_current_context().exit(FAILED)


@group.command()
@administering
@click.argument("target", type=click.Path(), metavar="FILE")
@json_option
def backup(target: str, as_json: bool) -> None:
    """Write a complete copy of the database to the new FILE, also while a server runs.

    With the --url of a server elsewhere, FILE is a name, and that server writes it into its
    backup_directory.
    """
    path = administration().backup(target)
    if as_json:
        show_json({"path": path})
    else:
        say(f"wrote {path}")


@group.command()
@administering
@click.argument("source", type=click.Path(), metavar="FILE")
@json_option
def restore(source: str, as_json: bool) -> None:
    """Put the backup FILE in the place of a database that is not in use; the old one is kept."""
    from moorage.cli.support.backend import InDatabase  # only now: it loads the whole service
    from moorage.store.api import StoreError
    from moorage.store.open import restore as restore_database
    from moorage.store.open import sqlite_path

    try:
        kept = restore_database(database_url(), os.path.abspath(source))
        path = sqlite_path(database_url())
    except StoreError as error:
        raise Failure(USAGE, str(error)) from None
    InDatabase(database_url()).restored(os.path.abspath(source), kept)
    if as_json:
        show_json({"database": path, "kept": kept})
    else:
        say(f"restored {path}" + (f"; the old one is kept as {kept}" if kept else ""))


@group.group("epoch")
def epoch_group() -> None:
    """Begin a new epoch after a restore."""


@epoch_group.command("raise")
@administering
@json_option
def epoch_raise(as_json: bool) -> None:
    """Begin a new epoch; needed after every restore that `moorage db restore` did not make."""
    raised = administration().epoch_raise()
    if as_json:
        show_json(raised)
    else:
        say(f"epoch {raised['epoch']} begins after revision {raised['revision']}")
