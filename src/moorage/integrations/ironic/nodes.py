"""Reads Ironic's nodes, and changes what is Moorage's own on them."""

import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import aiohttp
from multidict import CIMultiDict

from moorage.client.run.printing import printable
from moorage.client.transport import shown_url
from moorage.integrations.answers import LongAnswerError, json_of, object_of, read_answer
from moorage.integrations.connection_errors import reason_of, without
from moorage.integrations.connections import Connections
from moorage.integrations.provisioning.start import HostSystemError

Node = Mapping[str, Any]
"""The fields of a node, as Ironic answers them."""

VERSION_HEADER = "X-OpenStack-Ironic-API-Version"
VERSION_MAX_HEADER = "X-OpenStack-Ironic-API-Maximum-Version"

VERSION = (1, 82)
"""The API version that is asked for, or the newest that Ironic has: from 1.82 nodes have shards."""

PAGE = 1_000
"""Nodes in one page; Ironic may answer fewer (`[api] max_limit`)."""

PAGES_MAX = 1_000

LIST_BYTES_MAX = 256 << 20
"""Bytes of all pages of one list."""

ENTRIES_MAX = 100_000
"""Entries of one list, on all pages."""

MARKER_LENGTH_MAX = 255
"""Characters of what names the last entry of a page."""

FAULT_LENGTH_MAX = 300
"""Characters of an error of Ironic's that are repeated to people."""

HOST_NAME = re.compile(r"[A-Za-z0-9._:-]{1,255}")

VERSION_DIGITS_MAX = 5

DETAILS = frozenset({"conductor"})
"""Fields that are not in the database: Ironic 39 answers 500 if a list is to have only some fields,
and one of these."""

SINCE = {"owner": (1, 50), "lessee": (1, 65)}
"""The API versions from which some fields can be asked for; before, no node has them."""


class IronicError(HostSystemError):
    """Ironic did not answer, or not as Ironic does; the message says what happened."""


class LongListError(IronicError):
    """A list is longer than is read, or has more in it."""


class NodeReader(Connections):
    """The nodes of one Ironic. An async context manager: it has open connections.

    Every call raises IronicError.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | Callable[[], Mapping[str, str]] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Prepare to read.

        Args:
            url: of Ironic's API, without `/v1`.
            headers: sent with each request, such as `X-Auth-Token`; a function, called for each, if
                they may change.
            tls: whom to trust; None: the authorities of the system.
        """
        super().__init__(tls)
        self._url = url.rstrip("/")
        self.url = shown_url(self._url)
        """The address for people: without passwords."""
        self._given = headers or {}
        self._version: str | None = None
        self.answered_at: datetime | None = None
        """When Ironic last answered, by its own clock, in whole seconds; None: it did not say."""

    def _headers(self) -> CIMultiDict[str]:
        return CIMultiDict(self._given() if callable(self._given) else self._given)

    async def all(self, fields: Sequence[str]) -> list[Node]:
        """Return all nodes, over all pages, with at least these fields."""
        return [node async for page in self.pages(fields) for node in page]

    async def pages(
        self,
        fields: Sequence[str] | None,
        *,
        sort: tuple[str, str] | None = None,
        limit: int = PAGE,
        odd: bool = False,
    ) -> AsyncIterator[list[Node]]:
        """Yield the pages of a list of all nodes.

        Args:
            fields: what to read, at least; None: everything.
            sort: the field by which the nodes are sorted, and `asc` or `desc`; by default they are
                in the order in which they were enrolled.
            limit: how many nodes a page has; Ironic may return fewer.
            odd: also return nodes without a text as UUID; a text that says so is in its place. By
                default a list with one is an error.
        """
        path, query = "/v1/nodes/detail", {"limit": str(limit)}
        if fields is not None and DETAILS.isdisjoint(fields):
            path, query = "/v1/nodes", {"fields": await self._known(fields), **query}
        if sort is not None:
            query |= {"sort_key": sort[0], "sort_dir": sort[1]}
        async for page in self._pages(path, query, "nodes", odd=odd):
            yield page

    async def conductors(self) -> list[str]:
        """Return the host names of the conductors that are alive, as Ironic judges it."""
        query = {"fields": "hostname,alive", "limit": str(PAGE)}
        pages = self._pages("/v1/conductors", query, "conductors", "hostname")
        found = sorted(
            [one["hostname"] async for page in pages for one in page if one.get("alive")]
        )
        for name in found:
            if not HOST_NAME.fullmatch(name):
                raise IronicError(
                    f"{self.url} has a conductor with the invalid name {_clipped(name)}"
                )
        return found

    async def _pages(
        self, path: str, query: dict[str, str], member: str, key: str = "uuid", *, odd: bool = False
    ) -> AsyncIterator[list[Mapping[str, Any]]]:
        """Yield the entries of a list, page by page; each has a `key`, which is a text.

        `odd`: some of a page may have none. If no entry of it has one, this is not Ironic.
        """
        markers: set[str] = set()
        size = entries = nameless = 0
        for _ in range(PAGES_MAX):
            status, body = await self._ask("GET", f"{path}?{urlencode(query)}")
            page = self._object(status, body)
            found = page.get(member)
            if odd and isinstance(found, list):
                found, nameless = _named(found, key, nameless)
            if not isinstance(found, list) or not all(_is_entry(one, key) for one in found):
                raise IronicError(f"{self.url} is not Ironic: its answer has no list of {member}")
            size, entries = size + len(body), entries + len(found)
            if size > LIST_BYTES_MAX or entries > ENTRIES_MAX:
                raise LongListError(
                    f"the list of {member} of {self.url} is longer than {LIST_BYTES_MAX >> 20} MiB"
                    f" or {ENTRIES_MAX} entries"
                )
            following = page.get("next")
            del body, page
            yield found
            if not following:
                return
            marker = self._marker(following)
            if marker in markers:
                raise IronicError(f"the list of {member} of {self.url} repeats itself")
            markers.add(marker)
            query = {**query, "marker": marker}
        raise IronicError(f"the list of {member} of {self.url} does not end")

    def _marker(self, link: Any) -> str:
        """Return where the next page begins, by the link to it.

        Nothing else of the link counts: it has the address by which Ironic believes to be known.
        """
        try:
            marker: str = parse_qs(urlsplit(str(link)).query)["marker"][0]
        except (KeyError, ValueError):
            marker = ""
        if not 0 < len(marker) <= MARKER_LENGTH_MAX:
            raise IronicError(f"{self.url} is not Ironic: its link to the next page has no marker")
        return marker

    async def node(self, ident: str, fields: Sequence[str]) -> Node | None:
        """Return one node by UUID or name; None: there is none."""
        if self._version is None:
            self._version = await self._negotiated()
        status, body = await self._ask("GET", node_target(ident, fields, self._version))
        if status == HTTPStatus.NOT_FOUND and fault_of(body):  # another server has other words
            return None
        node = self._object(status, body)
        if not _is_entry(node, "uuid"):
            raise IronicError(f"{self.url} is not Ironic: its answer is not a node")
        return node

    async def provision(self, uuid: str, body: Mapping[str, Any]) -> tuple[int | None, str]:
        """Ask for a provision state; return the status and the error's text; None: no answer."""
        path = f"{node_path(uuid)}/states/provision"
        try:
            status, answer = await self._ask("PUT", path, body)
        except IronicError as error:
            return None, str(error)
        return status, fault_of(answer)

    async def extra_put(self, uuid: str, name: str, value: Any) -> int:
        """Set one member of a node's `extra`; return the status. None removes it."""
        patch: dict[str, Any] = {"op": "remove", "path": f"/extra/{name}"}
        if value is not None:
            patch |= {"op": "add", "value": value}
        status, _ = await self._ask("PATCH", node_path(uuid), [patch])
        return status

    def _object(self, status: int, body: bytes) -> dict[str, Any]:
        content, problem = object_of(body)
        if status != HTTPStatus.OK or content is None:
            said = fault_of(body) or problem
            reason = _clipped(without(said, self._headers().values()))
            raise IronicError(f"{self.url} answered {status}: {reason}")
        return content

    async def _ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        if self._version is None:
            self._version = await self._negotiated()
        headers = self._headers()
        headers[VERSION_HEADER] = self._version
        try:
            async with self._session(method).request(
                method,
                f"{self._url}{path}",
                json=body,
                headers=headers,
                allow_redirects=False,
            ) as answer:
                if answer.status == HTTPStatus.NOT_ACCEPTABLE:
                    self._version = None  # Ironic was replaced by an older one
                self.answered_at = time_in(answer.headers.get("Date", ""))
                return answer.status, await read_answer(answer)
        except LongAnswerError as error:
            raise LongListError(f"no answer from {self.url}: {reason_of(error)}") from error
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise IronicError(f"no answer from {self.url}: {reason_of(error)}") from error

    async def _known(self, fields: Sequence[str]) -> str:
        """Return those fields that can be asked for, as Ironic's parameter `fields` names them."""
        if self._version is None:
            self._version = await self._negotiated()
        return known_of(fields, self._version)

    async def _negotiated(self) -> str:
        """Return the API version to ask for."""
        try:
            async with self._session("GET").get(
                f"{self._url}/v1", headers=self._headers(), allow_redirects=False
            ) as answer:
                await read_answer(answer)
                newest = answer.headers.get(VERSION_MAX_HEADER, "")
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise IronicError(f"no answer from {self.url}: {reason_of(error)}") from error
        if (version := version_of(newest)) is None:
            raise IronicError(f"{self.url} is not Ironic: its answer names no API versions")
        return version


def node_path(ident: str) -> str:
    """Return the path of a node, by UUID or name."""
    return f"/v1/nodes/{quote(ident, safe='')}"


def node_target(ident: str, fields: Sequence[str], version: str) -> str:
    """Return path and query that read fields of one node, as far as an API version has them."""
    return f"{node_path(ident)}?{urlencode({'fields': known_of(fields, version)})}"


def version_of(newest: str) -> str | None:
    """Return the API version to ask an Ironic for, by its newest one; None: it is no version."""
    numbers = version_numbers(newest)
    return None if numbers is None else "{}.{}".format(*min(VERSION, numbers))


def version_numbers(version: str) -> tuple[int, int] | None:
    """Return the numbers of an API version; None: it is none."""
    major, dot, minor = version.partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal()):
        return None
    if max(len(major), len(minor)) > VERSION_DIGITS_MAX:
        return None
    return int(major), int(minor)


def known_of(fields: Sequence[str], version: str) -> str:
    """Return the fields that an API version has, as Ironic's parameter `fields` names them."""
    asked = tuple(map(int, version.split(".")))
    return ",".join(name for name in fields if SINCE.get(name, (1, 1)) <= asked)


def fault_of(body: bytes) -> str:
    """Return the text of an error of Ironic's; empty: there is none.

    `error_message` is an object, or the JSON text of one.
    """
    try:
        message = json_of(body)["error_message"]
        message = json_of(message.encode()) if isinstance(message, str) else message
        return str(message["faultstring"])
    except (ValueError, KeyError, TypeError):
        return ""


def time_in(header: str) -> datetime | None:
    """Return the time in a header `Date`; None: it is none."""
    try:
        at = parsedate_to_datetime(header)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _named(found: list[Any], key: str, before: int) -> tuple[list[Any], int]:
    """Return the entries of a page; those without a text as key get one, if others have theirs.

    Return also how many of the list have none, `before` this page included.
    """
    if not any(_is_entry(one, key) for one in found):
        return found, before
    named = []
    for one in found:
        if _is_entry(one, key):
            named.append(one)
            continue
        before += 1
        rest = one if isinstance(one, dict) else {}
        named.append({**rest, key: f"without a {key}, number {before}"})
    return named, before


def _is_entry(one: Any, key: str) -> bool:
    return isinstance(one, dict) and isinstance(one.get(key), str)


def _clipped(text: str) -> str:
    """Return a text of Ironic's for people: on one line, and not too long."""
    text = printable(text[: FAULT_LENGTH_MAX + 1])
    return text if len(text) <= FAULT_LENGTH_MAX else f"{text[:FAULT_LENGTH_MAX]}..."
