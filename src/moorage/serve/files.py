"""The files beside a SQLite database that let the command line find and enter its server."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from moorage.store.open import sqlite_path


class Announcement(Struct, frozen=True):
    """Where a running server is. `certificate` is what it serves HTTPS with, None for HTTP."""

    url: str
    pid: int
    auth: str
    certificate: str | None = None


class Files:
    """`PATH.token` holds the administrator's token, `PATH.server` the announcement."""

    def __init__(self, database_url: str) -> None:
        """Derive the names. Raises Unusable when the address is none."""
        path = sqlite_path(database_url)
        self.token = Path(f"{path}.token")
        self.server = Path(f"{path}.server")

    def token_write(self, secret: str) -> None:
        """Keep the administrator's token where only this user can read it."""
        _replace(self.token, f"{secret}\n".encode())

    def token_read(self) -> str | None:
        """Return the administrator's token; None when it is not there or not ours to read."""
        try:
            return self.token.read_text(encoding="ascii").strip() or None
        except (OSError, UnicodeDecodeError):
            return None

    def announce(self, announcement: Announcement) -> None:
        """Tell the command line where the server is."""
        _replace(self.server, msgspec.json.encode(announcement))

    def announced(self) -> Announcement | None:
        """Return where a server is, or was when it could not say good-bye; None if unknown."""
        try:
            return msgspec.json.decode(self.server.read_bytes(), type=Announcement)
        except (OSError, msgspec.DecodeError):
            return None

    def withdraw(self) -> None:
        """Take the announcement back."""
        self.server.unlink(missing_ok=True)


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
