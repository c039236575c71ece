"""Access to the server of a local database, whichever process that currently is.

No server is started. A database without a server is treated like a server that does not answer;
requests go to the next one that starts.
"""

from typing import Any

from moorage.cli.support.credentials import NOAUTH2_TOKEN, stored_token
from moorage.client.transport import Token, Transport, UnreachableError
from moorage.serve.files import Announcement, Files


class LocalServer:
    """Sends each request to the server that is announced next to the database at that moment."""

    def __init__(self, files: Files, token: Token) -> None:
        """Create access; `token` is by default the one next to the database.

        Raises:
            Failure: the token next to the database is invalid.
            UntrustedError: somebody else may have written the announcement next to it.
        """
        self._files = files
        self._token = token
        self._known: tuple[Announcement, Transport] | None = None
        if token is None:
            stored_token(files)  # raises for an invalid token now instead of while waiting
        files.announced(with_token=token is not None)  # likewise for an untrusted announcement

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        seconds_max: float | None = None,
        confirms: bool = False,
    ) -> Any:
        """Send one request; see `Transport.request`."""
        return self._transport().request(
            method, path, body, seconds_max=seconds_max, confirms=confirms
        )

    @property
    def pages(self) -> str | None:
        """The address of the pages of the server that has answered last."""
        return None if self._known is None else self._known[1].pages

    def _transport(self) -> Transport:
        try:
            found = self._files.announced(with_token=self._token is not None)
        except ValueError as error:
            raise UnreachableError(str(error)) from None
        if found is None:
            raise UnreachableError(_missing(self._files))
        if self._known is None or self._known[0] != found:
            beside = NOAUTH2_TOKEN if found.auth == "noauth2" else stored_token(self._files)
            token = self._token or beside
            try:
                transport = Transport(found.url, token, certificate=found.certificate, environ={})
            except (OSError, ValueError) as error:
                raise UnreachableError(f"cannot connect to {found.url}: {error}") from None
            self._known = (found, transport)
        return self._known[1]


def database_is_there(files: Files) -> bool:
    """Return whether there is or was a database; on PostgreSQL, if it is configured."""
    if files.database is None or files.server is None:
        return True
    return any(path.exists() for path in (files.database, files.token, files.server))


def _missing(files: Files) -> str:
    if files.database is None:
        return "the database is on PostgreSQL: set MOORAGE_URL or --url to one of its servers"
    return f"no server is running on {files.database}; set MOORAGE_URL or --url to use another one"
