"""Requests to the API server of a Kubernetes cluster, with limits.

Nothing is sent twice, except what the server has refused because it is busy (429): then it has
carried out nothing.
"""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import aiohttp

from moorage.client.run.printing import printable
from moorage.client.transport import shown_url
from moorage.integrations.answers import ANSWER_BYTES_MAX, LongAnswerError, object_of, read_answer
from moorage.integrations.connection_errors import reason_of, without
from moorage.integrations.connections import CONNECT_SECONDS, Connections
from moorage.integrations.kubernetes.denials import Denials, asked_of
from moorage.integrations.provisioning.start import HostSystemError

Object = Mapping[str, Any]
"""An object of Kubernetes, as its API returns it."""

PAGE = 100
"""Objects in one page of a list: to decode 500 hosts would hold the event loop for 0.1 s."""

PAGE_BYTES_MAX = 8 << 20
"""Bytes of one page: a longer one is asked for again with fewer objects. One object fits."""

EMPTY_PAGES_MAX = 100
"""Pages of one list that have no objects, although others follow."""

LIST_MAX = 100_000
"""Objects in one list."""

LIST_BYTES_MAX = 512 << 20
"""Bytes of all pages of one list: 5 KiB for each object of the longest."""

EVENT_BYTES_MAX = 8 << 20
"""Bytes of one event of a watch: an object, of which etcd stores at most 1.5 MiB, as JSON."""

BUSY_TRIES = 5
"""How often a request is sent, if the server answers each time that it is busy."""

RETRY_SECONDS_MAX = 30.0
"""The longest `Retry-After` that is followed."""

MESSAGE_LENGTH_MAX = 300
"""Characters of an error of the server's that are repeated to people."""

MERGE_PATCH = "application/merge-patch+json"

OF_SERVER = (
    None,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
"""Statuses that come from the state of the server, not from what was asked."""

AFTER_AUTHORIZATION = (
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.GONE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
"""Statuses of refusals of what the user has the right to ask for."""

STORE_LOST = re.compile(
    r"\betcdserver: (?:request timed out|no leader|not leader|leader changed|too many requests"
    r"|server stopped|unhealthy cluster|no space|mvcc: database space exceeded)"
    r"|\brpc error: code = (?:Unavailable|DeadlineExceeded|Canceled) "
)
"""An internal error (500) that comes from the state of the server's own store. The store refuses
single objects in the same way, such as one that is too large."""

ADMISSION = re.compile(
    r"^(?:Internal error occurred: )?(?:failed calling webhook|admission webhook) "
    r"|\bValidatingAdmissionPolicy '.*' with binding '.*' denied request"
)
"""Kubernetes' words in a refusal by a webhook or a policy: it concerns the object, whatever its
status, which the webhook or the policy has chosen, and whatever text of theirs follows."""

NOT_READY = "not yet ready to handle request"
"""Kubernetes' words in a refusal (403) of a server that has not read all of its policies yet."""


class KubernetesError(HostSystemError):
    """The server refused a request, or did not answer; the message says what happened.

    Attributes:
        status: of the answer; None: there was none, and the request may have been carried out.
        reason: Kubernetes' word for a refusal, such as `Conflict` or `Expired`; empty: none.
        may_pass: the server does not reach its store, has not read all policies, or denies a right
            that it may not know yet, see `denials.py`.
        by_admission: a webhook or a policy of the cluster refused it, because of the object.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        reason: str = "",
        *,
        may_pass: bool = False,
        by_admission: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.may_pass = may_pass
        self.by_admission = by_admission

    @property
    def is_of_server(self) -> bool:
        """Whether it comes from the state of the server: the next request would get the same."""
        return self.may_pass or (self.status in OF_SERVER and not self.by_admission)

    @property
    def is_denied_yet(self) -> bool:
        """Whether it denies a right, or all changes, perhaps only until the server has read all."""
        return self.may_pass and self.status == HTTPStatus.FORBIDDEN


class LongPageError(KubernetesError):
    """A page of a list is longer than is read."""


def no_headers() -> Mapping[str, str]:
    """Return no credentials."""
    return {}


def whole(one: Object) -> Object:
    """Return an object as it is: everything of it is kept."""
    return one


@dataclass(frozen=True)
class Listed:
    """All objects of a list, and the version of the state of the cluster that they are from."""

    objects: list[Object]
    version: str


@dataclass(frozen=True)
class Connection:
    """How to reach a cluster.

    `headers` returns the credentials, for each request: service accounts get new tokens. `tls`
    None: the authorities of the system are trusted.
    """

    server: str
    headers: Callable[[], Mapping[str, str]] = no_headers
    tls: ssl.SSLContext | None = None


class KubernetesApi(Connections):
    """Requests to one cluster. An async context manager: it has open connections.

    Paths begin with `/api` or `/apis`. Every call raises KubernetesError.
    """

    def __init__(self, connection: Connection, name: str = "moorage") -> None:
        """Prepare to send; `name` is the field manager of what is written."""
        super().__init__(connection.tls)
        self._connection = connection
        self._server = connection.server.rstrip("/")
        self.url = shown_url(self._server)
        """The address for people: without passwords."""
        self._name = name
        self._denials = Denials()

    async def get(self, path: str) -> Object | None:
        """Return the newest version of an object; None: there is none."""
        try:
            found = await self._call("GET", path)
        except KubernetesError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        if not is_object(found):
            raise KubernetesError(f"{self.url} is not Kubernetes: its answer is not an object")
        return found

    async def all(self, path: str, **query: str) -> list[Object]:
        """Return all objects of a list, in one state of the cluster.

        If the server forgets that state while it is read (410), the error's reason is `Expired`.
        """
        return (await self.listed(path, whole, **query)).objects

    async def listed(
        self, path: str, kept: Callable[[Object], Object] = whole, **query: str
    ) -> Listed:
        """Return all objects of a list as `all` does, with the version to watch from.

        `kept` returns what is kept of an object: a page that was read takes no memory any more.
        """
        objects: list[Object] = []
        first = ""
        async for page, version in self._pages(path, query):
            objects += map(kept, page)
            first = first or version
        return Listed(objects, first)

    async def newest_version(self, path: str) -> str:
        """Return the version of the state of the cluster, by reading at most one object of a list.

        Without a version in the request the server answers with its newest state.
        """
        page = await self._call("GET", f"{path}?{urlencode({'limit': '1'})}")
        return _version_of(page)

    @asynccontextmanager
    async def watch(
        self, path: str, version: str, seconds: float, silent: float
    ) -> AsyncIterator[AsyncIterator[Object]]:
        """Open a watch of a list; yield its events once the server has accepted it.

        Args:
            path: that of the list.
            version: the state after which it begins.
            seconds: after this time the server ends it.
            silent: how many seconds without an event, not even a bookmark, mean that it is broken.
        """
        query = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version}
        asked = urlencode({**query, "timeoutSeconds": str(max(1, int(seconds)))})
        try:
            async with self._session("GET").get(
                f"{self._server}{path}?{asked}",
                headers={"Accept": "application/json", **self._connection.headers()},
                timeout=aiohttp.ClientTimeout(
                    total=None, connect=CONNECT_SECONDS, sock_read=silent
                ),
                allow_redirects=False,
            ) as answer:
                if answer.status != HTTPStatus.OK:
                    right = asked_of("WATCH", path)
                    self._answer(right, answer.status, await read_answer(answer))
                    raise KubernetesError(f"{self.url} refuses a watch", answer.status)
                self._denials.permitted(asked_of("WATCH", path))
                yield self._events(answer)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise KubernetesError(f"no answer from {self.url}: {reason_of(error)}") from error

    async def create(self, path: str, body: Object, *, dry_run: bool = False) -> Object:
        """Create an object, and return it; `path` is that of the list.

        With `dry_run` nothing is stored: the answer has what would be.
        """
        query = f"{self._manager}&dryRun=All" if dry_run else self._manager
        return await self._call("POST", f"{path}?{query}", body)

    async def merge(self, path: str, patch: Object) -> Object:
        """Change an object by a merge patch, and return it.

        With `metadata.resourceVersion` in the patch it is refused (409) if the object has another
        version.
        """
        return await self._call("PATCH", f"{path}?{self._manager}", patch, MERGE_PATCH)

    async def delete(self, path: str) -> bool:
        """Delete an object; return whether it was there."""
        try:
            await self._call("DELETE", path)
        except KubernetesError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return False
            raise
        return True

    @property
    def _manager(self) -> str:
        return urlencode({"fieldManager": self._name})

    async def _events(self, answer: aiohttp.ClientResponse) -> AsyncIterator[Object]:
        """Yield the events of a watch; what comes after the last complete line is dropped."""
        rest = bytearray()
        async for piece in answer.content.iter_any():
            rest += piece
            if b"\n" in piece:
                *lines, rest = rest.split(b"\n")
                for line in filter(None, lines):
                    yield self._object(HTTPStatus.OK, bytes(line))
            if len(rest) > EVENT_BYTES_MAX:
                raise KubernetesError(
                    f"an event of {self.url} is longer than {EVENT_BYTES_MAX >> 20} MiB"
                )

    async def _pages(
        self, path: str, query: Mapping[str, str]
    ) -> AsyncIterator[tuple[list[Object], str]]:
        """Yield each page of a list with the version of its state."""
        following, size, objects, empty, limit = "", 0, 0, 0, PAGE
        while True:
            more = {"continue": following} if following else {}
            asked = urlencode({**query, "limit": str(limit), **more})
            try:
                status, body = await self._ask("GET", f"{path}?{asked}", None, "", PAGE_BYTES_MAX)
            except LongPageError:
                if limit == 1:
                    raise
                limit = max(1, limit // 4)
                continue
            page = self._answer(asked_of("GET", path), status, body)
            items = page.get("items")
            if not isinstance(items, list) or not all(map(is_object, items)):
                raise KubernetesError(f"{self.url} is not Kubernetes: its answer is not a list")
            size, objects = size + len(body), objects + len(items)
            if size > LIST_BYTES_MAX or objects > LIST_MAX:
                raise KubernetesError(
                    f"the list {path} of {self.url} is longer than {LIST_BYTES_MAX >> 20} MiB or"
                    f" {LIST_MAX} objects"
                )
            metadata = page.get("metadata")
            before, following = following, ""
            if isinstance(metadata, Mapping):
                following = str(metadata.get("continue") or "")
            yield items, _version_of(page)
            if not following:
                return
            empty += not items
            if following == before or empty > EMPTY_PAGES_MAX:
                raise KubernetesError(f"the list {path} of {self.url} repeats itself")

    async def _call(
        self, method: str, path: str, body: Object | None = None, kind: str = "application/json"
    ) -> Object:
        status, answer = await self._ask(method, path, body, kind)
        return self._answer(asked_of(method, path), status, answer)

    async def _ask(
        self,
        method: str,
        path: str,
        body: Object | None,
        kind: str,
        most: int = ANSWER_BYTES_MAX,
    ) -> tuple[int, bytes]:
        """Send a request, again if the server is busy; return status and body."""
        for _ in range(BUSY_TRIES - 1):
            status, answer, wait = await self._send(method, path, body, kind, most)
            if status != HTTPStatus.TOO_MANY_REQUESTS:
                return status, answer
            await asyncio.sleep(wait)
        status, answer, _ = await self._send(method, path, body, kind, most)
        return status, answer

    async def _send(
        self, method: str, path: str, body: Object | None, kind: str, most: int
    ) -> tuple[int, bytes, float]:
        headers = {"Accept": "application/json", **self._connection.headers()}
        if body is not None:
            headers["Content-Type"] = kind
        try:
            async with self._session(method).request(
                method,
                f"{self._server}{path}",
                data=None if body is None else json.dumps(body),
                headers=headers,
                allow_redirects=False,
            ) as answer:
                wait = _seconds_of(answer.headers.get("Retry-After", ""))
                return answer.status, await read_answer(answer, most), wait
        except LongAnswerError as error:
            raise LongPageError(f"no answer from {self.url}: {error}") from error
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise KubernetesError(f"no answer from {self.url}: {reason_of(error)}") from error

    def _answer(self, asked: str, status: int, body: bytes) -> Object:
        """Return the object in the answer to a request. Raises KubernetesError for a refusal."""
        if status < HTTPStatus.BAD_REQUEST or status in AFTER_AUTHORIZATION:
            self._denials.permitted(asked)
        return self._object(status, body, asked)

    def _object(self, status: int, body: bytes, asked: str = "") -> Object:
        content, problem = object_of(body)
        if content is not None and HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return content
        said, reason = problem, ""
        if content is not None:
            said, reason = str(content.get("message") or said), str(content.get("reason") or "")
        secrets = [value.rpartition(" ")[2] for value in self._connection.headers().values()]
        by_admission = ADMISSION.search(said) is not None
        may_pass = not by_admission and self._may_pass(status, said, asked)
        said = printable(without(said, secrets))
        if len(said) > MESSAGE_LENGTH_MAX:
            said = f"{said[:MESSAGE_LENGTH_MAX]}..."
        text = f"{self.url} answered {status}: {said}"
        raise KubernetesError(text, status, reason, may_pass=may_pass, by_admission=by_admission)

    def _may_pass(self, status: int, said: str, asked: str) -> bool:
        if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            return STORE_LOST.search(said) is not None
        if status != HTTPStatus.FORBIDDEN:
            return False
        return NOT_READY in said or self._denials.may_pass(said, asked)


def is_object(one: Any) -> bool:
    """Return whether this is an object that a cluster has stored: it has a name and a version."""
    metadata = one.get("metadata") if isinstance(one, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("namespace", ""), str):
        return False
    return all(isinstance(metadata.get(name), str) for name in ("name", "uid", "resourceVersion"))


def _version_of(page: Object) -> str:
    """Return the version of a list; empty: it has none."""
    metadata = page.get("metadata")
    return str(metadata.get("resourceVersion") or "") if isinstance(metadata, Mapping) else ""


def _seconds_of(header: str) -> float:
    """Return how long to wait by a header `Retry-After`; without one: a second."""
    return min(float(header), RETRY_SECONDS_MAX) if header.isdecimal() else 1.0
