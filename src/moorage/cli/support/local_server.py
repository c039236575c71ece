"""The way to the server of our own database, whichever it is at the moment.

While no process serves, nothing starts: a database without a server is a server that does not
answer, and the first that comes up is asked.
"""

from typing import Any

from moorage.cli.support.credentials import NOAUTH2_TOKEN, token_beside
from moorage.client.transport import Transport, UnreachableError
from moorage.serve.files import Announcement, Files


class Beside:
    """Requests to the server of a database, each to the one that is announced beside it then."""

    def __init__(self, files: Files, token: str | None) -> None:
        """Remember where to look; `token` is asked with, by default the one beside the database.

        Raises:
            Failure: the token beside the database is none.
            UntrustedError: the announcement beside it is not to be believed.
        """
        self._files = files
        self._token = token
        self._known: tuple[Announcement, Transport] | None = None
        if token is None:
            token_beside(files)  # what is no token is told now, not in a waiting line
        files.announced(
            told=token is not None
        )  # as is an announcement that somebody else may have written

    def request(
        self, method: str, path: str, body: Any = None, *, seconds_max: float | None = None
    ) -> Any:
        """Send one request; see `Transport.request`."""
        return self._transport().request(method, path, body, seconds_max=seconds_max)

    def _transport(self) -> Transport:
        try:
            found = self._files.announced(told=self._token is not None)
        except ValueError as error:
            raise UnreachableError(str(error)) from None
        if found is None:
            raise UnreachableError(_missing(self._files))
        if self._known is None or self._known[0] != found:
            beside = NOAUTH2_TOKEN if found.auth == "noauth2" else token_beside(self._files)
            token = self._token or beside
            try:
                transport = Transport(found.url, token, certificate=found.certificate)
            except (OSError, ValueError) as error:
                raise UnreachableError(f"no way to {found.url}: {error}") from None
            self._known = (found, transport)
        return self._known[1]


def database_is_there(files: Files) -> bool:
    """Is there a database, or was there one? One on a PostgreSQL is there once it is named."""
    if files.database is None or files.server is None:
        return True
    return any(path.exists() for path in (files.database, files.token, files.server))


def _missing(files: Files) -> str:
    if files.database is None:
        return "the database is on a PostgreSQL: name one of its servers (MOORAGE_URL, --url)"
    return f"no server is running on {files.database} (MOORAGE_URL, --url: another server)"
