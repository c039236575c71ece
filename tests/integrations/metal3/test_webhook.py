"""The webhook: what it answers, and its certificate."""

import asyncio
import base64
import io
import json
import shutil
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from moorage.integrations.metal3 import admission_webhook
from moorage.integrations.metal3.admission_webhook import Certificates, answered
from moorage.integrations.metal3.hosts import OWN, PAUSED
from moorage.integrations.metal3.install import manifest
from moorage.integrations.pem_files import PemError
from moorage.integrations.sockets import bound
from tests.support.admission_cases import CASES, GOVERNOR, Case
from tests.support.certificates import Certificate, certificate
from tests.support.kubernetes_client import Kubernetes, host, hosts_in, least_status
from tests.support.kubernetes_double.patches import json_patched
from tests.support.kubernetes_double.server import KubernetesDouble

SERVICE = "moorage-webhook.moorage.svc"
ALL = hosts_in("metal3")
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}


def made(folder: Path) -> Certificate:
    """Return a new certificate in a new folder."""
    folder.mkdir()
    return certificate(folder, f"DNS:{SERVICE}", "IP:127.0.0.1")


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[int]:
    """Serve the webhook with the certificate in a folder; yield its port."""
    sockets = bound("127.0.0.1:0")
    files = folder / "cert.pem", folder / "key.pem"
    async with admission_webhook.webhook_served(GOVERNOR, *files, sockets):
        yield sockets[0].getsockname()[1]


def play(scene: Callable[[], Awaitable[None]]) -> None:
    """Run a scene."""
    asyncio.run(asyncio.wait_for(scene(), 30))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_the_answer_adds_our_pause_and_nothing_else(case: Case) -> None:
    """Each row of the table: allowed always, with our pause exactly if the decision says so."""
    response = answered({**REVIEW, "request": case.review()}, GOVERNOR)["response"]
    assert (response["uid"], response["allowed"]) == ("review-1", True)
    assert ("patch" in response) is case.pauses
    if case.pauses:
        after = json_patched(case.new, json.loads(base64.b64decode(response["patch"])))
        kept = case.new["metadata"].get("annotations", {})
        assert after["metadata"].pop("annotations") == {**kept, PAUSED: OWN}
        assert after["spec"] == case.new["spec"]


def configuration(trusted: Certificate) -> dict[str, Any]:
    """Return the shipped configuration, with the authority that cert-manager would write."""
    values = {"namespace": "moorage", "failure_policy": "Fail", "failure_reason": "", "image": "i"}
    found: dict[str, Any]
    *_, found = yaml.safe_load_all(manifest("webhook", values))
    found["webhooks"][0]["clientConfig"]["caBundle"] = trusted.bundle
    return found


def test_the_pause_is_stored_with_the_image(tmp_path: Path) -> None:
    """The API server calls the webhook over TLS, by the shipped configuration, at a create and at a
    patch; an idle host is not paused, nor is a host under another pause.
    """
    trusted = made(tmp_path / "tls")

    async def scene() -> None:
        async with (
            KubernetesDouble() as double,
            Kubernetes(double.url) as api,
            served(trusted.folder) as port,
        ):
            double.admission.services["moorage", "moorage-webhook"] = ("127.0.0.1", port)
            await api.create(WEBHOOKS, configuration(trusted))
            first = await api.create(ALL, host("a"))
            assert first["metadata"]["annotations"] == {PAUSED: OWN}
            other = await api.create(ALL, host("b", annotations={PAUSED: "metal3.io/capm3"}))
            assert other["metadata"]["annotations"] == {PAUSED: "metal3.io/capm3"}
            await api.merge(f"{ALL}/a", {"metadata": {"annotations": {PAUSED: None}}})
            idle = await api.merge(f"{ALL}/a/status", {"status": least_status()})
            assert PAUSED not in idle["metadata"].get("annotations", {})
            image = {"spec": {"image": {"url": "http://images/a"}}}
            assert (await api.merge(f"{ALL}/a", image))["metadata"]["annotations"] == {PAUSED: OWN}

    play(scene)


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (b"{", "the body must be JSON"),
        (b"\xff", "the body must be JSON"),
        (b"[]", "the body must be a JSON object"),
        (b'{"kind": "AdmissionReview"}', "AdmissionReview of admission.k8s.io/v1"),
        (json.dumps(REVIEW).encode(), "the review needs an object 'request'"),
        (json.dumps({**REVIEW, "request": {}}).encode(), "request.uid must be a string"),
        (
            json.dumps({**REVIEW, "request": {**CASES[0].review(), "object": None}}).encode(),
            "request needs an object 'object'",
        ),
        (
            json.dumps({**REVIEW, "request": {**CASES[0].review(), "userInfo": {}}}).encode(),
            "request.userInfo.username must be a string",
        ),
    ],
)
def test_a_bad_review_gets_a_clear_error(tmp_path: Path, body: bytes, wrong: str) -> None:
    """400 and a sentence, and the webhook still answers."""
    trusted = made(tmp_path / "tls")

    async def scene() -> None:
        async with served(trusted.folder) as port, client(trusted) as session:
            url = f"https://127.0.0.1:{port}"
            async with session.post(f"{url}/pause", data=body) as answer:
                assert (answer.status, wrong in await answer.text()) == (400, True)
            async with session.get(f"{url}/healthz") as answer:
                assert answer.status == 200

    play(scene)


def test_a_body_that_is_too_long_is_refused(tmp_path: Path) -> None:
    """413 for more than 3 MiB, and a review of almost 3 MiB is answered."""
    trusted = made(tmp_path / "tls")

    async def scene() -> None:
        async with served(trusted.folder) as port, client(trusted) as session:
            url = f"https://127.0.0.1:{port}/pause"
            async with session.post(
                url, data=io.BytesIO(b" " * (admission_webhook.BODY_BYTES_MAX + 1))
            ) as answer:
                assert answer.status == 413
            text = json.dumps({**REVIEW, "request": CASES[0].review()}).encode()
            async with session.post(
                url, data=io.BytesIO(text.ljust(admission_webhook.BODY_BYTES_MAX - 1))
            ) as answer:
                assert answer.status == 200

    play(scene)


def test_an_api_server_that_leaves_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A connection that ends within a review, as after the timeout of the API server, is not
    logged.
    """
    trusted = made(tmp_path / "tls")

    async def scene() -> None:
        async with served(trusted.folder) as port:
            _, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=trusted.client(), server_hostname="127.0.0.1"
            )
            head = "POST /pause HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
            writer.write(head.encode())
            await writer.drain()
            health = f"https://127.0.0.1:{port}/healthz"
            async with client(trusted) as session:
                await session.get(health)  # once this is answered, the review is being read
                writer.close()
                await writer.wait_closed()
                await session.get(health)

    play(scene)
    assert [one.message for one in caplog.records if one.levelname == "ERROR"] == []


def client(trusted: Certificate) -> aiohttp.ClientSession:
    """Return a client that trusts a certificate."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusted.client()))


def test_a_burst_of_reviews_waits_for_its_turn(tmp_path: Path) -> None:
    """Two hundred at once, as many as an API server has by default, are all answered."""
    trusted = made(tmp_path / "tls")

    async def scene() -> None:
        connector = aiohttp.TCPConnector(limit=0, ssl=trusted.client())
        async with (
            served(trusted.folder) as port,
            aiohttp.ClientSession(connector=connector) as session,
        ):
            body = {**REVIEW, "request": CASES[0].review()}

            async def ask() -> int:
                async with session.post(f"https://127.0.0.1:{port}/pause", json=body) as answer:
                    return answer.status

            assert {*await asyncio.gather(*(ask() for _ in range(200)))} == {200}

    play(scene)


def test_slow_clients_keep_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Clients that never finish their bodies, short and long ones, need no rights; a review beside
    them is answered. When they go, the log says nothing.
    """
    trusted = made(tmp_path / "tls")
    monkeypatch.setattr(admission_webhook, "BODY_SECONDS", 20.0)

    async def scene() -> None:
        async with served(trusted.folder) as port, client(trusted) as session:
            slow = []
            for number in range(100):
                _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted.client())
                writer.write(b"POST /pause HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n")
                writer.write(b" " * (200_000 if number % 2 else 1))
                slow.append(writer)
            body = {**REVIEW, "request": CASES[0].review()}
            url = f"https://127.0.0.1:{port}/pause"
            async with session.post(url, json=body, timeout=aiohttp.ClientTimeout(4)) as answer:
                assert answer.status == 200
            for writer in slow:
                writer.transport.abort()

    play(scene)
    assert caplog.text == ""


def test_a_review_with_too_many_values(tmp_path: Path) -> None:
    """It would take memory many times its length: 400."""
    trusted = made(tmp_path / "tls")
    values = b"[]" + b",[]" * admission_webhook.VALUES_MAX

    async def scene() -> None:
        async with served(trusted.folder) as port, client(trusted) as session:
            url = f"https://127.0.0.1:{port}/pause"
            async with session.post(url, data=io.BytesIO(b"[" + values + b"]")) as answer:
                assert (answer.status, "too many values" in await answer.text()) == (400, True)

    play(scene)


async def offers(port: int, wanted: Certificate) -> bool:
    """Return whether a new connection gets a certificate."""
    try:
        async with client(wanted) as session, session.get(f"https://127.0.0.1:{port}/healthz"):
            return True
    except aiohttp.ClientConnectorCertificateError:
        return False


def test_a_renewed_certificate_is_offered_and_open_connections_stay(tmp_path: Path) -> None:
    """New connections get what the files have now; while these do not fit together, the last
    certificate that could be used; a connection that is open goes on.
    """
    first, second = made(tmp_path / "first"), made(tmp_path / "second")
    live = tmp_path / "live"
    shutil.copytree(first.folder, live)

    async def scene() -> None:
        async with served(live) as port, client(first) as session:
            url = f"https://127.0.0.1:{port}/healthz"
            async with session.get(url) as answer:
                assert await answer.text() == "ok\n"
            shutil.copy(second.folder / "cert.pem", live)
            assert await offers(port, first), "the key is still that of the first"
            shutil.copy(second.folder / "key.pem", live)
            assert await offers(port, second)
            assert not await offers(port, first)
            async with session.get(url) as answer:  # its connection was kept
                assert await answer.text() == "ok\n"
            (live / "key.pem").unlink()
            assert await offers(port, second)

    play(scene)


def test_a_certificate_that_cannot_be_used_is_an_error_at_the_start(tmp_path: Path) -> None:
    """Files that are missing, or do not fit together, end the start with their names."""
    first, second = made(tmp_path / "first"), made(tmp_path / "second")
    with pytest.raises(PemError, match=r"missing\.pem"):
        Certificates(tmp_path / "missing.pem", first.folder / "key.pem")
    with pytest.raises(PemError, match=r"key\.pem"):
        Certificates(first.folder / "cert.pem", second.folder / "key.pem")
    assert isinstance(
        Certificates(first.folder / "cert.pem", first.folder / "key.pem").server, ssl.SSLContext
    )
