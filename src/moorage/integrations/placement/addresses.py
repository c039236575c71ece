"""The address of a database of OpenStack Placement, as its `placement.conf` has it."""

import os
import re
import stat
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from moorage.client.proxies import bracketed
from moorage.integrations.placement.source_error import SourceError

DRIVERS = {
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "sqlite": "sqlite+pysqlite",
}
"""Ours, for each kind of database: an address that names another driver is of the same database."""

FILE_BYTES_MAX = 64 << 10

_REFERENCE = re.compile(r"\$\{[\w.]+\}|\$[A-Za-z_]\w*")
"""How an option of oslo.config names another one."""


def address_in(path: str) -> URL:
    """Return the address in a file that nobody else may read. Raises SourceError."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISREG(mode) and mode & 0o077:
                raise SourceError(
                    f"{path} has a password, and others may read it: run chmod 600 {path}"
                )
            text = file.read(FILE_BYTES_MAX)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    return address_of(text, path)


def address_of(text: str, where: str = "--database") -> URL:
    """Return an address with our driver of its database. Raises SourceError, without the text."""
    form = "mysql+pymysql://USER:PASSWORD@HOST/NAME, postgresql://... or sqlite:///FILE"
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError):
        raise SourceError(f"{where} has no address of a database: {form}") from None
    kind = url.drivername.partition("+")[0]
    if kind not in DRIVERS:
        raise SourceError(f"{where}: databases of the kind '{kind}' are not read: {form}")
    if "@" in (url.host or ""):
        raise SourceError(
            f"{where}: a character ends the account or its password: write @ as %40, / as %2F,"
            " : as %3A and % as %25"
        )
    if not url.database:
        raise SourceError(f"{where} names no database: {form}")
    if named := _REFERENCE.match(url.host or "") or _REFERENCE.match(url.database):
        raise SourceError(
            f"{where}: {named[0]} stands for another option of placement.conf; write its value"
        )
    # A plugin of the original's, such as devstack's dbcounter, is no part of the address.
    return url.set(drivername=DRIVERS[kind]).difference_update_query(["plugin"])


def shown(url: URL) -> str:
    """Return an address for people: without the password, and without options, which may be one.

    It is the same however the address is spelled, because it names an import.
    """
    kind = url.drivername.partition("+")[0]
    if kind == "sqlite":
        return f"sqlite:///{Path(url.database or '').resolve()}"
    place = bracketed(url.host or "")
    if url.port:
        place += f":{url.port}"
    return f"{kind}://{place}/{url.database}"
