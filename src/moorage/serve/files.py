"""The files that let the command line find and enter a server: beside a SQLite database.

A PostgreSQL database has no place here. Its administrator's token is kept among the user's state
files, and its servers are not announced: there may be many, and the command line needs none.
"""

import hashlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from moorage.store.addresses import is_postgres, password_removed
from moorage.store.open import sqlite_path
from moorage.store.ownership import read_own, read_secret


class Announcement(Struct, frozen=True):
    """Where a running server is. `certificate` is what it serves HTTPS with, None for HTTP."""

    url: str
    pid: int
    auth: str
    certificate: str | None = None


class Files:
    """Paths: `token` of the administrator's token, `server` of the announcement.

    And `database` of the database; on a PostgreSQL that has none, nor has an announcement.
    """

    def __init__(self, database_url: str) -> None:
        """Derive the names. Raises Unusable when the address is none."""
        shared = is_postgres(database_url)
        path = _state_path(database_url) if shared else sqlite_path(database_url)
        self.token = Path(f"{path}.token")
        self.server = None if shared else Path(f"{path}.server")
        self.database = None if shared else Path(path)

    def token_write(self, secret: str) -> None:
        """Keep the administrator's token where only this user can read it."""
        self.token.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(self.token, f"{secret}\n".encode())

    def token_read(self) -> str | None:
        """Return the administrator's token; None when it is not there or not ours to read.

        Raises UntrustedError: others may have read it.
        """
        try:
            secret = read_secret(str(self.token), self._owner())
            return secret.decode("ascii").strip() or None
        except (OSError, UnicodeDecodeError):
            return None

    def announce(self, announcement: Announcement) -> None:
        """Tell the command line where the server is."""
        if self.server is not None:
            _replace(self.server, msgspec.json.encode(announcement))

    def announced(self, *, told: bool) -> Announcement | None:
        """Return where a server is, or was when it could not say good-bye; None if unknown.

        `told`: a token that was told is to be sent there. If only the one beside the database is,
        root may believe the user to whom the database belongs: it is that user's own.

        Raises UntrustedError: somebody else may have written it.
        """
        if self.server is None:
            return None
        try:
            content = read_own(
                str(self.server),
                "it decides where tokens are sent",
                "run the command as the user of the server, or name the server with --url",
                None if told else self._owner(),
            )
            return msgspec.json.decode(content, type=Announcement)
        except (OSError, msgspec.DecodeError):
            return None

    def _owner(self) -> int | None:
        """Return to whom the database belongs, if that is for us to know: root's."""
        if self.database is None or os.geteuid() != 0:
            return None
        try:
            return self.database.stat().st_uid
        except OSError:
            return None

    def withdraw(self) -> None:
        """Take the announcement back."""
        if self.server is not None:
            self.server.unlink(missing_ok=True)


def _state_path(database_url: str) -> Path:
    """Return the beginning of the names of the files for a database on a server."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    digest = hashlib.sha256(password_removed(database_url).encode()).hexdigest()
    return Path(state) / "moorage" / digest[:16]


def _replace(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, content)
        os.fsync(file)
    finally:
        os.close(file)
    partial.rename(path)
