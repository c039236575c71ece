"""The Placement face in this process: a real service and database file, but no socket."""

import asyncio
import json
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from moorage.core.clock import Instant
from moorage.faces.auth.noauth2 import NoAuth2
from moorage.faces.long_answers import WHOLE_BYTES_MAX
from moorage.faces.placement.app import PlacementFace
from moorage.faces.placement.policy import Profile
from moorage.faces.web import Limits, Message, Scope
from moorage.service.app import Service
from moorage.store.open import open_engine
from tests.service.running import ManualClock

T = TypeVar("T")

BEGINNING = Instant(1_700_000_000_000_000)
BEGINNING_TEXT = "Tue, 14 Nov 2023 22:13:20 GMT"
JSON = {"content-type": "application/json"}


class Reply(NamedTuple):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def detail(self) -> str:
        text: str = self.json["errors"][0]["detail"]
        return text

    @property
    def code(self) -> str:
        code: str = self.json["errors"][0]["code"]
        return code


class Client:
    """A client of one face; its event loop lives as long as the client."""

    def __init__(self, folder: Path, limits: Limits | None = None, url: str | None = None) -> None:
        self.url = url or f"sqlite:///{folder / 'ledger.sqlite'}"
        self.limits = limits
        self.runner = asyncio.Runner()
        self.clock = ManualClock(BEGINNING)
        self.faults: list[Exception] = []
        self.prefix = ""
        self._open()

    def _open(self) -> None:
        opening = Service.start(open_engine(self.url), self.clock, on_fatal=self.faults.append)
        self.service = self.run(opening)
        self.face = PlacementFace(self.service, NoAuth2(), limits=self.limits)

    def restart(self) -> None:
        """Stop the service and start it again on its database, a second later."""
        self.run(self.service.stop())
        self.clock.at += 1_000_000
        self._open()

    def run(self, waiting: Awaitable[T]) -> T:
        """Await something in the client's event loop."""

        async def wait() -> T:
            return await waiting

        return self.runner.run(wait())

    def close(self) -> None:
        """Stop the service and the event loop."""
        self.run(self.service.stop())
        self.runner.close()
        assert self.faults == []

    def profile(self, policy: Profile = "default", cors_origin: str | None = None) -> None:
        """Change the policy profile."""
        self.face.configure(policy, cors_origin)

    def ask(
        self,
        method: str,
        target: str,
        body: Any = None,
        version: int | str = 39,
        token: str | None = "admin",
        **headers: str,
    ) -> Reply:
        """Send one request. A body that is not bytes is sent as JSON; `_` in headers means `-`."""
        return self.run(self.ask_async(method, target, body, version, token, **headers))

    def ask_all(self, *asked: tuple[str, str, Any]) -> list[Reply]:
        """Send several requests (method, target, body) at once, in this order."""

        async def together() -> list[Reply]:
            return list(await asyncio.gather(*(self.ask_async(*each) for each in asked)))

        return self.run(together())

    async def ask_async(
        self,
        method: str,
        target: str,
        body: Any = None,
        version: int | str = 39,
        token: str | None = "admin",
        **headers: str,
    ) -> Reply:
        """Return the response to a request as in `ask`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        spelled = f"1.{version}" if isinstance(version, int) else version
        sent.setdefault("openstack-api-version", f"placement {spelled}")
        if token is not None:
            sent["x-auth-token"] = token
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            sent.setdefault("content-type", "application/json")
            sent.setdefault("content-length", str(len(body)))
        return await self._exchange(self._scope(method, target, sent), [body or b""])

    def send(self, method: str, target: str, headers: dict[str, str], chunks: list[bytes]) -> Reply:
        """Send exactly these chunks; without any the client disconnects within the body."""
        return self.run(self._exchange(self._scope(method, target, headers), chunks))

    def _scope(self, method: str, target: str, headers: dict[str, str]) -> Scope:
        path, _, query = target.partition("?")
        return {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": f"{self.prefix}{path}".encode(),
            "query_string": query.encode("latin-1"),
            "root_path": self.prefix,
            "scheme": "http",
            "server": ("127.0.0.1", 8778),
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1"))
                for name, value in {"host": "moorage.example:8778", **headers}.items()
            ],
        }

    async def _exchange(self, scope: Scope, chunks: list[bytes]) -> Reply:
        sent: list[Message] = []
        waiting: list[Message] = [
            {"type": "http.request", "body": chunk, "more_body": number < len(chunks)}
            for number, chunk in enumerate(chunks, 1)
        ] or [{"type": "http.request", "body": b"{", "more_body": True}]

        async def receive() -> Message:
            if not waiting and chunks:
                await asyncio.Event().wait()  # a complete request waits for its response
            return waiting.pop(0) if waiting else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        await self.face(scope, receive, send)
        start, *pieces = sent
        body = b"".join(piece["body"] for piece in pieces)
        assert [piece.get("more_body", False) for piece in pieces] == [True] * (len(pieces) - 1) + [
            False
        ]
        headers = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        if len(body) <= WHOLE_BYTES_MAX:
            assert headers["content-length"] == str(len(body))
        assert headers["x-openstack-request-id"].startswith("req-")
        return Reply(start["status"], headers, body)

    # Common preparations of tests.

    def provider(self, uuid: str, parent: str | None = None, **inventories: int) -> None:
        """Create a provider whose name is its UUID, with inventories by resource class."""
        body = {"name": uuid, "uuid": uuid, "parent_provider_uuid": parent}
        assert self.ask("POST", "/resource_providers", body).status == 200
        if inventories:
            listed = {name: {"total": total} for name, total in inventories.items()}
            given = {"resource_provider_generation": 0, "inventories": listed}
            path = f"/resource_providers/{uuid}/inventories"
            assert self.ask("PUT", path, given).status == 200

    def claim(self, consumer: str, provider: str, **amounts: int) -> Reply:
        """Claim amounts of one provider for a new consumer."""
        body = {
            "allocations": {provider: {"resources": amounts}},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        return self.ask("PUT", f"/allocations/{consumer}", body)
