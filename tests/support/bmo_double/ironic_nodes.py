"""The nodes of an Ironic, or of what stands before it, over HTTP."""

from typing import Any

import aiohttp

from tests.support.bmo_double.book import Book
from tests.support.bmo_double.nodes import Seen, Transient
from tests.support.ironic_double.agenda import Agenda

HEADERS = {
    "X-OpenStack-Ironic-API-Version": "1.87",
    "User-Agent": "baremetal-operator gophercloud/v2.1.0",
}
SECONDS = 30.0
"""How long the operator waits for an answer of Ironic."""
PAGE = 1_000


class IronicNodes:
    """All nodes of an Ironic. Asynchronous context manager.

    `refused` counts what was answered with 409. The book has what the operator itself has seen;
    Ironic knows better.
    """

    def __init__(self, url: str, agenda: Agenda) -> None:
        self._url, self._agenda = url, agenda
        self.book = Book()
        self.refused = 0

    async def __aenter__(self) -> "IronicNodes":
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        self._session = aiohttp.ClientSession(self._url, headers=HEADERS, timeout=timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def _call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        try:
            async with self._session.request(method, path, json=body) as answer:
                found = await answer.json(content_type=None) if answer.status == 200 else None
                return answer.status, found
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Transient(f"{method} {path}: {error!r}") from None

    async def get(self, name: str) -> Seen | None:
        """Return a node; None: there is none."""
        code, found = await self._call("GET", f"/v1/nodes/{name}")
        if code == 404:
            return None
        if code != 200:
            raise Transient(f"Ironic answered {code}")
        return self._seen(found)

    def _seen(self, found: dict[str, Any]) -> Seen:
        state = found["provision_state"] or "available"
        self._agenda.catch_up()
        self.book.note(self._agenda.now, found["name"], state)
        return Seen(
            found["name"],
            state,
            found.get("last_error") or "",
            inspected=bool(found.get("inspection_finished_at")),
            powered=found.get("power_state") == "power on",
        )

    async def create(self, name: str) -> None:
        """Enrol a node."""
        await self._done("POST", "/v1/nodes", {"name": name, "driver": "fake-hardware"})

    async def change(self, name: str, target: str) -> bool:
        """Let a node change its state; False: 409."""
        return await self._done("PUT", f"/v1/nodes/{name}/states/provision", {"target": target})

    async def power(self, name: str, *, on: bool) -> bool:
        """Switch a node; False: 409."""
        body = {"target": "power on" if on else "power off"}
        return await self._done("PUT", f"/v1/nodes/{name}/states/power", body)

    async def remove(self, name: str) -> None:
        """Remove a node."""
        await self._done("DELETE", f"/v1/nodes/{name}")

    async def _done(self, method: str, path: str, body: Any = None) -> bool:
        code, _ = await self._call(method, path, body)
        if code == 409:
            self.refused += 1
            return False
        if code >= 400:
            raise Transient(f"Ironic answered {code} to {method} {path}")
        return True

    async def all(self) -> list[Seen]:
        """Return all nodes, page by page."""
        fields = "uuid,name,provision_state"
        path: str | None = f"/v1/nodes?fields={fields}&limit={PAGE}"
        found: list[Seen] = []
        while path:
            code, page = await self._call("GET", path)
            if code != 200:
                raise Transient(f"Ironic answered {code}")
            found += map(self._seen, page["nodes"])
            following = page.get("next")
            path = following and following[following.index("/v1/") :]
        return found
