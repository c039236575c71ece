"""Finds the configuration of Placement where its own programs look for it, and our database."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from moorage.cli.openstack.privileges import become_owner
from moorage.cli.support.output import printable
from moorage.config import ConfigError
from moorage.config.settings import Loaded, database_address, load
from moorage.store.api import StoreError

PROJECT = "placement"
FAILED = 1


def fail(program: str, reason: object) -> NoReturn:
    """End the program with one line on standard error."""
    print(f"{program}: {printable(str(reason))}", file=sys.stderr)  # noqa: T201 - its output
    sys.exit(FAILED)


def files_by_default(program: str, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the files and folders that the original reads if the command line names none."""
    home = os.path.expanduser("~")
    folders = [os.path.join(home, f".{PROJECT}"), home, f"/etc/{PROJECT}", "/etc"]
    folders += [
        os.path.join(environ[name], "etc", PROJECT)
        for name in ("SNAP_COMMON", "SNAP")
        if environ.get(name)
    ]
    found = []
    for ending in (".conf", ".conf.d"):
        for name in (PROJECT, program):
            paths = (os.path.join(folder, f"{name}{ending}") for folder in folders)
            found += [path for path in paths if os.path.exists(path)][:1]
    return found


def files_of(
    program: str, given: Sequence[str] | None, environ: Mapping[str, str] = os.environ
) -> list[str]:
    """Return the files of the configuration, those that the command line names if there are any."""
    return [*given] if given else files_by_default(program, environ)


def loaded(program: str, files: Sequence[str]) -> Loaded:
    """Return the settings; ends the program if they are not valid."""
    try:
        return load({}, placement=files)
    except ConfigError as error:
        fail(program, error)


def database_of(program: str, settings: Loaded) -> str:
    """Return the address of our database, and become its owner if this process is root.

    Ends the program if nobody has chosen one.

    By default it is in the working directory, which is nobody's choice here.
    """
    if not settings.is_chosen("database"):
        fail(
            program,
            "set database in the section [moorage] of placement.conf, or MOORAGE_DATABASE, such as"
            " sqlite:////var/lib/moorage/moorage.sqlite; [placement_database] is not Moorage's",
        )
    try:
        database = database_address(settings.settings)
        become_owner(database)
    except (ConfigError, StoreError, OSError) as error:
        fail(program, error)
    return database
