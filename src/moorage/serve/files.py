"""The files that let the command line find and enter a server: beside a SQLite database.

A PostgreSQL database has no place here. Its administrator's token is kept among the user's state
files, and its servers are not announced: there may be many, and the command line needs none.
"""

import hashlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from moorage.store.open import is_postgres, sqlite_path


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
        """Return the administrator's token; None when it is not there or not ours to read."""
        try:
            return self.token.read_text(encoding="ascii").strip() or None
        except (OSError, UnicodeDecodeError):
            return None

    def announce(self, announcement: Announcement) -> None:
        """Tell the command line where the server is."""
        if self.server is not None:
            _replace(self.server, msgspec.json.encode(announcement))

    def announced(self) -> Announcement | None:
        """Return where a server is, or was when it could not say good-bye; None if unknown."""
        if self.server is None:
            return None
        try:
            return msgspec.json.decode(self.server.read_bytes(), type=Announcement)
        except (OSError, msgspec.DecodeError):
            return None

    def withdraw(self) -> None:
        """Take the announcement back."""
        if self.server is not None:
            self.server.unlink(missing_ok=True)


def _state_path(database_url: str) -> Path:
    """Return the beginning of the names of the files for a database on a server."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    digest = hashlib.sha256(database_url.encode()).hexdigest()
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
