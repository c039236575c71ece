"""The copy of a list of a server that sends odd, torn or old things."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import pytest
from aiohttp import web

from moorage.integrations.kubernetes import api as kubernetes
from moorage.integrations.kubernetes.api import Connection, KubernetesApi
from moorage.integrations.kubernetes.mirror import STALE_SECONDS, STEADY_SECONDS, Mirror, StaleError
from tests.support.virtual_loop import VirtualLoop, run, turns

PATH = "/apis/metal3.io/v1alpha1/baremetalhosts"
PATIENCE = 20.0


def one(name: str, version: int, **more: Any) -> dict[str, Any]:
    """Return an object."""
    identity = {"name": name, "namespace": "n", "uid": f"uid-{name}"}
    return {"metadata": {**identity, "resourceVersion": f"{version}"}, **more}


def event(kind: str, *named: Any, **more: Any) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": kind, "object": one(*named, **more)}).encode() + b"\n"


def error(code: int) -> bytes:
    """Return the line by which a server ends a watch."""
    status = {"kind": "Status", "code": code, "reason": "Expired", "message": "too old"}
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


NEWEST = 10**6
CUT = b"cut"
END = b"end"


@dataclass
class Script:
    """A server that answers lists and watches as it was given; the last list again and again.

    Its newest version is a late one. A watch sends its pieces, and then stays open unless the last
    one is CUT or END.
    """

    lists: list[tuple[int, list[dict[str, Any]]]]
    watches: list[list[bytes]]
    begun: list[str] = field(default_factory=list)
    """The versions after which watches began."""
    listed: int = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        if request.query.get("limit") == "1":
            return web.json_response({"metadata": {"resourceVersion": f"{NEWEST}"}, "items": []})
        if "watch" not in request.query:
            version, items = self.lists[0] if len(self.lists) == 1 else self.lists.pop(0)
            self.listed += 1
            metadata = {"resourceVersion": f"{version}"}
            return web.json_response({"metadata": metadata, "items": items})
        self.begun.append(request.query["resourceVersion"])
        pieces = self.watches.pop(0) if self.watches else []
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            if piece == CUT:
                assert request.transport is not None
                request.transport.abort()
            if piece in (CUT, END):
                return response
            await response.write(piece)
        await asyncio.get_running_loop().create_future()
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[Mirror]:
        """Yield a copy of what it has."""
        application = web.Application()
        application.router.add_get(PATH, self.answer)
        runner = web.AppRunner(
            application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            async with KubernetesApi(Connection(url)) as api, Mirror(api, PATH) as mirror:
                await mirror.tried.wait()
                yield mirror
        finally:
            await runner.cleanup()


def play(script: Script, scene: Callable[[Mirror, VirtualLoop], Awaitable[None]]) -> None:
    """Run a scene with the copy of a script."""

    async def act(loop: VirtualLoop) -> None:
        async with script.followed() as mirror:
            await scene(mirror, loop)

    run(act)


async def until(holds: Callable[[], bool]) -> None:
    """Return when something holds."""
    last = monotonic() + PATIENCE
    while not holds():
        assert monotonic() < last, "it never holds"
        await asyncio.sleep(0)


def seen(mirror: Mirror) -> dict[str, str]:
    """Return the versions of the objects of a copy."""
    return {
        found["metadata"]["name"]: found["metadata"]["resourceVersion"]
        for found in mirror.objects()
    }


def test_a_line_that_is_torn() -> None:
    """What was sent of a line before the connection was cut counts as nothing: the next watch
    begins after the last whole line; a line that comes in pieces is whole.
    """
    whole, torn = event("MODIFIED", "a", 11), event("MODIFIED", "a", 12)
    script = Script(
        [(10, [one("a", 5)])],
        [[whole[:7], whole[7:], torn[:-9], CUT], [torn, torn[:5], END], [event("ADDED", "b", 13)]],
    )

    async def scene(mirror: Mirror, _: VirtualLoop) -> None:
        await until(lambda: seen(mirror) == {"a": "12", "b": "13"})
        assert script.begun == ["10", "11", "12"]
        assert script.listed == 1

    play(script, scene)


def test_events_that_are_older_than_the_list() -> None:
    """They change nothing: what the list has shown as changed or deleted stays so."""
    script = Script(
        [(10, [one("a", 9)])],
        [
            [
                event("MODIFIED", "a", 8),
                event("ADDED", "gone", 7),
                event("DELETED", "a", 10),
                event("ADDED", "b", 12),
                event("DELETED", "b", 11),
                event("UNKNOWN", "c", 13),
                event("BOOKMARK", "", 14),
                event("MODIFIED", "a", 13),
                event("MODIFIED", "b", 15),
                END,
            ]
        ],
    )

    async def scene(mirror: Mirror, _: VirtualLoop) -> None:
        await until(lambda: len(script.begun) == 2)
        assert seen(mirror) == {"a": "9", "b": "15"}
        assert script.begun == ["10", "15"]

    play(script, scene)


def test_a_list_that_is_older_than_the_watch() -> None:
    """One such list, of a server that lags, does not take the copy back; the next one is taken."""
    script = Script(
        [(10, [one("a", 9)]), (8, []), (20, [one("a", 9), one("c", 17)])],
        [[event("ADDED", "b", 12), error(410)]],
    )

    async def scene(mirror: Mirror, _: VirtualLoop) -> None:
        names: list[set[str]] = []
        while not names or names[-1] != {"a", "c"}:
            await until(mirror.changed.is_set)
            mirror.changed.clear()
            names.append({*seen(mirror)})
        assert names[-2:] == [{"a", "b"}, {"a", "c"}]
        assert script.listed == 3
        await until(lambda: script.begun == ["10", "20"])

    play(script, scene)


def test_a_cluster_that_was_restored() -> None:
    """If list after list is older, the history of the cluster is another one: it is read again."""
    script = Script(
        [(100, [one("a", 90)]), (50, [one("b", 49)])],
        [[error(504)], [event("MODIFIED", "b", 51)]],
    )

    async def scene(mirror: Mirror, _: VirtualLoop) -> None:
        await until(lambda: seen(mirror) == {"b": "51"})
        assert script.begun == ["100", "50"]

    play(script, scene)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"hello\n", "is not JSON"),
        (b"[]\n", "is not a JSON object"),
        (b'{"type": "ADDED"}\n', "an event has no object"),
        (event("ADDED", "a", 10**30), "is not a number, so versions cannot be compared"),
        (b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": "11"}}}\n', "no object"),
        (event("ADDED", "a", -3), "'-3' is not a number, so versions cannot be compared"),
        (error(403), "ends a watch: too old"),
        (b"x" * 3_000, "an event of http.* is longer than"),
    ],
)
def test_a_server_that_only_sends_rubbish(
    line: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is soon not used any more, and the error says why; few requests are sent."""
    monkeypatch.setattr(kubernetes, "EVENT_BYTES_MAX", 2_000)
    script = Script([(10, [])], [[line] for _ in range(1_000)])

    async def scene(mirror: Mirror, loop: VirtualLoop) -> None:
        await until(lambda: len(script.begun) == 1)
        for _ in range(100):
            loop.advance(0.5)
            await turns()
        await until(lambda: not mirror.is_watching)
        with pytest.raises(StaleError, match=words):
            mirror.objects()
        assert len(script.begun) + script.listed < 40

    play(script, scene)


def test_a_server_that_answers_nothing() -> None:
    """A watch that is silent for long has broken off, and all is listed again."""
    script = Script([(10, [])], [[event("ADDED", "a", 11)], [event("ADDED", "b", 12)]])

    async def scene(mirror: Mirror, loop: VirtualLoop) -> None:
        await until(lambda: seen(mirror) == {"a": "11"})
        loop.advance(STEADY_SECONDS + STALE_SECONDS)
        assert seen(mirror) == {"a": "11"}
        loop.advance(100)
        await until(lambda: script.listed == 2)

    play(script, scene)
