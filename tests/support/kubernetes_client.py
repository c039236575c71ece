"""A small client of Kubernetes' API, for tests and for doubles of controllers."""

import json
import ssl
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Any, Self

import aiohttp

Object = dict[str, Any]

CORE = "/api/v1"
HOSTS = "/apis/metal3.io/v1alpha1"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


class Answered(Exception):
    """The server refused a request: with a status code and a body."""

    def __init__(self, code: int, body: Any, retry_after: str | None = None) -> None:
        super().__init__(code, body)
        self.code, self.body, self.retry_after = code, body, retry_after


class Kubernetes:
    """A client. Asynchronous context manager. `name` is the manager of the fields it changes.

    `user`: the user as whom an administrator sends every request, with all rights.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        name: str = "test",
        tls: ssl.SSLContext | None = None,
        user: str | None = None,
    ) -> None:
        self.url, self._headers, self._tls = url, {"User-Agent": f"{name}/1"}, tls
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        if user is not None:
            self._headers |= {"Impersonate-User": user, "Impersonate-Group": "system:masters"}

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls or True)
        timeout = aiohttp.ClientTimeout(total=None)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def call(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Send a request; return the object in the answer. Raises Answered.

        `type` is that of the body; all others are parameters of the query.
        """
        headers = {**self._headers, "Content-Type": more.pop("type", "application/json")}
        data = None if body is None else json.dumps(body)
        async with self._session.request(
            method, self.url + path, data=data, headers=headers, params=more
        ) as answer:
            found = await answer.json(content_type=None)
            if answer.status >= 400:
                raise Answered(answer.status, found, answer.headers.get("Retry-After"))
            return found

    async def get(self, path: str, **query: Any) -> Any:
        """Read an object or a list. Raises Answered."""
        return await self.call("GET", path, **query)

    async def create(self, path: str, body: Object, **query: Any) -> Any:
        """Create an object below the path of its resource. Raises Answered."""
        return await self.call("POST", path, body, **query)

    async def update(self, path: str, body: Object, **query: Any) -> Any:
        """Replace an object. Raises Answered."""
        return await self.call("PUT", path, body, **query)

    async def merge(self, path: str, body: Object, **query: Any) -> Any:
        """Send a merge patch. Raises Answered."""
        return await self.call("PATCH", path, body, type=MERGE, **query)

    async def json_patch(self, path: str, operations: Iterable[Object], **query: Any) -> Any:
        """Send a JSON patch. Raises Answered."""
        return await self.call("PATCH", path, [*operations], type=JSON_PATCH, **query)

    async def apply(self, path: str, body: Object, manager: str, **query: Any) -> Any:
        """Apply an object. Raises Answered."""
        return await self.call("PATCH", path, body, type=APPLY, fieldManager=manager, **query)

    async def delete(self, path: str, body: Object | None = None) -> Any:
        """Delete an object. Raises Answered."""
        return await self.call("DELETE", path, body)

    async def watch(self, path: str, **query: Any) -> AsyncIterator[Object]:
        """Yield the events of a watch until it ends. Raises Answered and aiohttp.ClientError."""
        parameters = {"watch": "1", **query}
        async with self._session.get(
            self.url + path, headers=self._headers, params=parameters
        ) as answer:
            if answer.status >= 400:
                raise Answered(answer.status, await answer.json(content_type=None))
            async for line in answer.content:
                yield json.loads(line)


def hosts_in(namespace: str) -> str:
    """Return the path of the hosts of a namespace."""
    return f"{HOSTS}/namespaces/{namespace}/baremetalhosts"


def host(name: str, *, image: str | None = None, **metadata: Any) -> Object:
    """Return a BareMetalHost as a user writes it."""
    spec: Object = {
        "online": True,
        "bootMACAddress": "00:00:5e:00:53:01",
        "bmc": {"address": "ipmi://192.0.2.1", "credentialsName": f"{name}-bmc"},
    }
    if image is not None:
        spec["image"] = {"url": image, "checksum": f"{image}.sha256sum"}
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def least_status(**more: Any) -> Object:
    """Return the least status that the schema of a BareMetalHost allows: an available host."""
    return {
        "errorMessage": "",
        "operationalStatus": "OK",
        "poweredOn": False,
        "provisioning": {"ID": "", "state": "available"},
        **more,
    }
