"""Asks a Placement API, ours or the original's, from several threads."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from moorage.client.transport import TOKEN_HEADER, UNAUTHORIZED, Transport, UnreachableError
from moorage.integrations.placement.source_error import SourceError

NEWEST = 39
"""The newest microversion, 1.39, that answers are compared at."""

SECONDS_MAX = 600.0
"""How long to wait for one answer: the original takes minutes for a list of all candidates."""

MISFITS = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)
"""What Python raises for an answer of another shape."""

LINE_MAX = 300
"""Characters of Python's own message."""

Token = Callable[[bool], str]
"""Returns the token; True: another one, because the last one was not accepted."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an API has answered: its status and its JSON, None if it has none.

    `modified` is its Last-Modified, `date` the time of the server, both in seconds since 1970.
    """

    status: int
    value: Any
    modified: float | None = None
    date: float | None = None


class PlacementApi:
    """One Placement API. Each thread has a connection of its own, which stays open.

    Every call raises UnreachableError.
    """

    def __init__(self, transport: Transport, token: Token | None = None) -> None:
        """Prepare to ask; `token`: in place of that of the transport."""
        self._transport = transport
        self._token = token
        self._threads = threading.local()
        self._open: list[HTTPConnection] = []
        self.url = transport.url
        self.prefix = urlsplit(transport.url).path.rstrip("/")
        """The path below which it is: links in answers begin with it."""
        self.minor = 0

    def agree(self) -> int:
        """Return the newest microversion that it has, up to ours. Raises SourceError."""
        found = self.get("/")
        try:
            newest = found.value["versions"][0]["max_version"]
            major, _, minor = newest.partition(".")
            if major != "1":
                raise ValueError
            return min(NEWEST, int(minor))
        except (TypeError, LookupError, ValueError, AttributeError):
            raise SourceError(
                f"{self.url} is not a Placement API: GET / answers {found.status}"
            ) from None

    def get(self, path: str, minor: int | None = None) -> Answer:
        """Return the answer to a GET, with any status; `minor`: at another microversion."""
        version = self.minor if minor is None else minor
        headers = {"OpenStack-API-Version": f"placement 1.{version}"} if version else {}
        if self._token is not None:
            headers[TOKEN_HEADER] = self._token(False)
        status, sent, raw = self._got(path, headers)
        if status == UNAUTHORIZED and self._token is not None:
            headers[TOKEN_HEADER] = self._token(True)
            status, sent, raw = self._got(path, headers)
        return Answer(status, _value(raw), _seconds(sent, "last-modified"), _seconds(sent, "date"))

    def close(self) -> None:
        """Close the connections of all threads, which must have ended."""
        for connection in self._open:
            connection.close()
        self._open.clear()

    def _got(self, path: str, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        connection = getattr(self._threads, "connection", None)
        if connection is None:
            connection = self._threads.connection = self._transport.connection(SECONDS_MAX)
            self._open.append(connection)
        try:
            return self._transport.got(connection, path, headers)
        except UnreachableError:
            # The server may close a connection that it has not used for a while.
            return self._transport.got(connection, path, headers)


def not_placement(url: str, error: Exception) -> SourceError:
    """Return the error for an answer of another shape."""
    return SourceError(f"{url} does not answer as a Placement API: {str(error)[:LINE_MAX]}")


def _value(raw: bytes) -> Any:
    try:
        return json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return raw[:300].decode("utf-8", "replace")


def _seconds(headers: Mapping[str, str], name: str) -> float | None:
    try:
        return parsedate_to_datetime(headers[name]).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
