"""The files by which the command line finds a server and its token: next to a SQLite database.

With PostgreSQL, the administrator's token is among the user's state files, and servers are not
announced: there may be several, and the command line does not need them.
"""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from moorage.ownership import read_own, read_secret
from moorage.store.addresses import is_postgres, password_removed, sqlite_path


class Announcement(Struct, frozen=True):
    """The address of a running server. `certificate` is its HTTPS certificate; None for HTTP."""

    url: str
    pid: int
    auth: str
    certificate: str | None = None


class Files:
    """Paths: `token` of the administrator's token, `server` of the announcement, `database`.

    `catalog` is where the catalog is saved. With PostgreSQL, all but `token` are None.
    """

    def __init__(self, database_url: str) -> None:
        """Derive the paths. Raises Unusable: the address is not valid."""
        shared = is_postgres(database_url)
        path = _state_path(database_url) if shared else sqlite_path(database_url)
        self.token = Path(f"{path}.token")
        self.server = None if shared else Path(f"{path}.server")
        self.database = None if shared else Path(path)
        self.catalog = None if shared else f"{path}.catalog"

    def token_prepare(self) -> None:
        """Make the folder of the token; check that a file can be written there. Raises OSError."""
        self.token.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial, file = _partial(self.token)
        os.close(file)
        partial.unlink()

    def token_write(self, secret: str) -> None:
        """Store the administrator's token so that only this user can read it. Raises OSError."""
        self.token.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(self.token, f"{secret}\n".encode())

    def token_read(self) -> str | None:
        """Return the administrator's token; None if it is missing or this user may not read it.

        Raises UntrustedError: other users may have read it.
        """
        try:
            secret = read_secret(str(self.token), self._owner())
            return secret.decode("ascii").strip() or None
        except (OSError, UnicodeDecodeError):
            return None

    def announce(self, announcement: Announcement) -> None:
        """Publish the server's address for the command line."""
        if self.server is not None:
            _replace(self.server, msgspec.json.encode(announcement))

    def announced(self, *, with_token: bool) -> Announcement | None:
        """Return the announced server, which may have crashed since; None if there is none.

        `with_token`: the caller will send a token that the user gave explicitly. If it only sends
        the token next to the database, root may trust a file of the owner of the database, because
        the token is that owner's as well.

        Raises UntrustedError: another user may have written it.
        """
        if self.server is None:
            return None
        try:
            content = read_own(
                str(self.server),
                "run the command as the user of the server, or name the server with --url",
                None if with_token else self._owner(),
            )
            return msgspec.json.decode(content, type=Announcement)
        except (OSError, msgspec.DecodeError):
            return None

    def _owner(self) -> int | None:
        """Return the owner of the database, if this process runs as root; otherwise None."""
        if self.database is None or os.geteuid() != 0:
            return None
        try:
            return self.database.stat().st_uid
        except OSError:
            return None

    def withdraw(self) -> None:
        """Remove the announcement."""
        if self.server is not None:
            self.server.unlink(missing_ok=True)


def _state_path(database_url: str) -> Path:
    """Return the common prefix of the files for a PostgreSQL database."""
    import hashlib  # deferred: OpenSSL is slow to load, and most databases are on SQLite

    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    digest = hashlib.sha256(password_removed(database_url).encode()).hexdigest()
    return Path(state) / "moorage" / digest[:16]


def _replace(path: Path, content: bytes) -> None:
    """Write a file atomically; only its owner may read it."""
    partial, file = _partial(path)
    try:
        os.write(file, content)
        os.fsync(file)
    finally:
        os.close(file)
    partial.rename(path)


def _partial(path: Path) -> tuple[Path, int]:
    """Create the file that is to replace another one; return its path and its descriptor."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    return partial, os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
