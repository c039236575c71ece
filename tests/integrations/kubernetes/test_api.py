"""Requests to Kubernetes: what is read, written and refused, and what is never sent twice."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from moorage.integrations.kubernetes import api as kubernetes
from moorage.integrations.kubernetes import denials
from moorage.integrations.kubernetes.api import Connection, KubernetesApi, KubernetesError
from tests.integrations.kubernetes.test_denials import ADMISSION, PATCH, UNREAD
from tests.support.kubernetes_client import host, hosts_in
from tests.support.kubernetes_double.access import ADMIN
from tests.support.kubernetes_double.faults import DROP, Fault
from tests.support.kubernetes_double.server import KubernetesDouble

HOSTS = hosts_in("metal3")
PAUSED = "baremetalhost.metal3.io/paused"
Play = Callable[[KubernetesDouble, KubernetesApi], Awaitable[None]]


def play(scene: Play) -> None:
    """Run a scene with a double and our client."""

    async def run() -> None:
        async with KubernetesDouble() as double, KubernetesApi(Connection(double.url)) as api:
            await asyncio.wait_for(scene(double, api), 20)

    asyncio.run(run())


def pause(version: str | None, value: str | None) -> dict[str, Any]:
    """Return a patch of the pause of a host that has this version; None: whatever it has."""
    metadata: dict[str, Any] = {"annotations": {PAUSED: value}}
    return {"metadata": metadata if version is None else {**metadata, "resourceVersion": version}}


def test_objects() -> None:
    """An object is created, read, changed and deleted; what is not there is None or False."""

    async def scene(_: KubernetesDouble, api: KubernetesApi) -> None:
        assert await api.get(f"{HOSTS}/a") is None
        made = await api.create(HOSTS, host("a"))
        assert await api.get(f"{HOSTS}/a") == made
        changed = await api.merge(f"{HOSTS}/a", pause(None, "moorage"))
        assert changed["metadata"]["annotations"] == {PAUSED: "moorage"}
        managers = {one["manager"] for one in changed["metadata"].get("managedFields", [])}
        assert managers <= {"moorage"}
        assert await api.delete(f"{HOSTS}/a") is True
        assert await api.delete(f"{HOSTS}/a") is False

    play(scene)


def test_a_change_of_an_older_version() -> None:
    """It is refused as a conflict, and changes nothing."""

    async def scene(_: KubernetesDouble, api: KubernetesApi) -> None:
        made = await api.create(HOSTS, host("a"))
        version = made["metadata"]["resourceVersion"]
        first = await api.merge(f"{HOSTS}/a", pause(version, "moorage"))
        with pytest.raises(KubernetesError) as refusal:
            await api.merge(f"{HOSTS}/a", pause(version, "other"))
        assert (refusal.value.status, refusal.value.reason) == (409, "Conflict")
        assert await api.get(f"{HOSTS}/a") == first
        version = first["metadata"]["resourceVersion"]
        last = await api.merge(f"{HOSTS}/a", pause(version, None))
        assert PAUSED not in last["metadata"].get("annotations", {})

    play(scene)


def test_long_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list is read in pages, of one state; a state that is forgotten meanwhile is an error."""
    monkeypatch.setattr(kubernetes, "PAGE", 2)

    async def scene(double: KubernetesDouble, api: KubernetesApi) -> None:
        for name in "abcde":
            await api.create(HOSTS, host(name))
        assert [one["metadata"]["name"] for one in await api.all(HOSTS)] == [*"abcde"]
        pages = api._pages(HOSTS, {})
        await anext(pages)
        await api.delete(f"{HOSTS}/d")
        double.forget()
        with pytest.raises(KubernetesError) as expired:
            await anext(pages)
        assert (expired.value.status, expired.value.reason) == (410, "Expired")
        monkeypatch.setattr(kubernetes, "LIST_MAX", 3)
        with pytest.raises(KubernetesError, match="is longer than"):
            await api.all(HOSTS)

    play(scene)


@pytest.mark.parametrize("verb", ["get", "patch"])
def test_a_busy_server(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it refuses because it is busy is sent again after the time it names, some times."""
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("moorage.integrations.kubernetes.api.asyncio.sleep", wait)

    async def scene(double: KubernetesDouble, api: KubernetesApi) -> None:
        await api.create(HOSTS, host("a"))
        double.faults.pending = [Fault(verb=verb, times=2, answer=429, retry_after=7)]
        send = api.get(f"{HOSTS}/a") if verb == "get" else api.merge(f"{HOSTS}/a", pause(None, "x"))
        assert await send is not None
        assert waits == [7, 7]
        double.faults.pending = [Fault(verb="get", times=9, answer=429, retry_after=3_600)]
        with pytest.raises(KubernetesError, match="429"):
            await api.get(f"{HOSTS}/a")
        assert waits[2:] == [kubernetes.RETRY_SECONDS_MAX] * (kubernetes.BUSY_TRIES - 1)

    play(scene)


@pytest.mark.parametrize("carry_out", [True, False])
def test_a_lost_answer(carry_out: bool) -> None:
    """A change without an answer may have been carried out; it is never sent twice."""

    async def scene(double: KubernetesDouble, api: KubernetesApi) -> None:
        await api.create(HOSTS, host("a"))
        double.faults.pending = [Fault(verb="patch", answer=DROP, carry_out=carry_out)]
        with pytest.raises(KubernetesError, match="no answer from") as lost:
            await api.merge(f"{HOSTS}/a", pause(None, "moorage"))
        assert lost.value.status is None
        assert double.counts["patch", "baremetalhosts"] == 1
        found = await api.get(f"{HOSTS}/a")
        assert found is not None
        assert (PAUSED in found["metadata"].get("annotations", {})) == carry_out

    play(scene)


def test_credentials() -> None:
    """They are asked for with each request, and are in no error."""

    async def run() -> None:
        async with KubernetesDouble(accounts={"good-secret": ADMIN}) as double:
            token = "bad-secret"
            connection = Connection(double.url, lambda: {"Authorization": f"Bearer {token}"})
            async with KubernetesApi(connection) as api:
                with pytest.raises(KubernetesError) as refusal:
                    await api.all(HOSTS)
                assert refusal.value.status == 401
                assert token not in str(refusal.value)
                token = "good-secret"
                assert await api.all(HOSTS) == []

    asyncio.run(run())


@asynccontextmanager
async def answering(status: int, body: bytes, **headers: str) -> AsyncIterator[KubernetesApi]:
    """Provide a client of a server that always answers this."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers=headers)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        headers_of = {"Authorization": "Bearer some-secret"}
        async with KubernetesApi(Connection(url, lambda: headers_of)) as api:
            yield api
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (200, b"hello", "is not JSON"),
        (200, b"[]", "is not a JSON object"),
        (200, b'{"items": 3}', "its answer is not a list"),
        (200, b'{"items": [{"metadata": {}}]}', "its answer is not a list"),
        (200, b'{"items": [{"metadata": {"name": "a"}}]}', "its answer is not a list"),
        (200, b'{"items": [], "metadata": {"continue": "x"}}', "repeats itself"),
        (200, b'{"items": [' + b"[" * 100_000, "nested too deeply"),
        (302, b"", "answered 302"),
        (403, b'{"message": "no\\u001b[31m some-secret", "reason": "Forbidden"}', "no"),
        (500, b'{"message": "' + b"x" * 9_000 + b'"}', r"x{300}\.\.\.$"),
    ],
)
def test_odd_answers(status: int, body: bytes, words: str) -> None:
    """They become errors of one line, without control characters and without our token."""

    async def run() -> None:
        async with answering(status, body, Location="http://127.0.0.1:1/") as api:
            with pytest.raises(KubernetesError, match=words) as odd:
                await api.all(HOSTS)
            text = str(odd.value)
            assert text.isprintable() and "some-secret" not in text

    asyncio.run(run())


CALLING = 'Internal error occurred: failed calling webhook "x"'
WEBHOOK = 'admission webhook "x" denied the request'
POLICY = (
    "baremetalhosts.metal3.io \"a\" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'y'"
    " denied request"
)
REFUSALS = (401, 403, 429, 500, 503, 504)
"""Statuses that a webhook may choose for its refusal; a policy may choose the first two."""


@pytest.mark.parametrize(
    ("status", "said", "of_server"),
    [
        (429, "too many requests", True),
        (503, "storage is (re)initializing", True),
        (504, "Timeout: request did not complete within requested timeout", True),
        (500, "etcdserver: request timed out", True),
        (500, "rpc error: code = Unavailable desc = connection error", True),
        (500, "etcdserver: request timed out, possibly due to connection lost", True),
        (500, "rpc error: code = Unavailable desc = etcdserver: leader changed", True),
        (500, "etcdserver: mvcc: database space exceeded", True),
        (500, "etcdserver: request is too large", False),
        (500, "rpc error: code = ResourceExhausted desc = trying to send message larger", False),
        (500, f"{CALLING}: connection refused", False),
        (500, f"{CALLING}: rpc error: code = Unavailable desc = vault is sealed", False),
        *((status, f"{WEBHOOK}: etcdserver: request timed out", False) for status in REFUSALS),
        *((status, f"{POLICY}: not this rack", False) for status in (401, 403)),
        (403, f"{WEBHOOK}: {PATCH}", False),
        (403, 'hosts "a" is forbidden: not yet ready to handle request', True),
        (403, PATCH, True),
        (403, f"{PATCH}: {UNREAD}", True),
        *((403, said, False) for said in ADMISSION),
        (422, "spec.online: Required value", False),
    ],
)
def test_what_comes_from_the_server(status: int, said: str, of_server: bool) -> None:
    """Refusals that another request would get, too, are not taken for those of one object."""

    async def scene(double: KubernetesDouble, api: KubernetesApi) -> None:
        double.faults.pending = [
            Fault("patch", "baremetalhosts", times=9, answer=status, says=said, retry_after=0)
        ]
        with pytest.raises(KubernetesError) as refusal:
            await api.merge(f"{HOSTS}/a", pause(None, "moorage"))
        assert refusal.value.status == status
        assert refusal.value.is_of_server is of_server

    play(scene)


@pytest.mark.parametrize("permitted", ["stored", "conflict", "gone"])
def test_a_right_that_was_granted(monkeypatch: pytest.MonkeyPatch, permitted: str) -> None:
    """A right that was missing is there once a request is permitted, of whatever object: after
    that, a denial may come from roles that the server has not read yet.
    """
    clock = [1_000.0]
    monkeypatch.setattr(denials, "monotonic", lambda: clock[0])

    async def scene(double: KubernetesDouble, api: KubernetesApi) -> None:
        await api.create(HOSTS, host("b"))

        async def denied(name: str) -> bool:
            double.faults.pending = [Fault("patch", "baremetalhosts", answer=403, says=PATCH)]
            with pytest.raises(KubernetesError) as refusal:
                await api.merge(f"{HOSTS}/{name}", pause(None, "moorage"))
            return refusal.value.may_pass

        assert await denied("a")
        clock[0] += denials.SETTLE_SECONDS
        assert not await denied("a")
        clock[0] += 1e6
        assert not await denied("a")
        assert await api.all(HOSTS)
        assert not await denied("a"), "to read is another right"
        if permitted == "stored":
            await api.merge(f"{HOSTS}/b", pause(None, "moorage"))
        else:
            name, version = {"conflict": ("b", "1"), "gone": ("c", None)}[permitted]
            with pytest.raises(KubernetesError):
                await api.merge(f"{HOSTS}/{name}", pause(version, "moorage"))
        assert await denied("a")

    play(scene)
