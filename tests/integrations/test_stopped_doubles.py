"""A double that stops ends all its connections: no client waits for an answer that never comes."""

import asyncio
import gc
import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from tests.support.certificates import Certificate, certificate
from tests.support.ironic_double.server import IronicDouble
from tests.support.kubernetes_double.server import KubernetesDouble
from tests.support.virtual_loop import turns

TURNS = range(6)
"""How far a connection is when the double stops: not accepted, just accepted, in its handshake."""


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """The certificate of the double."""
    return certificate(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    """Collect no garbage, which would end a forgotten connection at some time."""
    gc.disable()
    yield
    gc.enable()


async def ended(double: KubernetesDouble | IronicDouble, number: int) -> None:
    """Connect and say nothing; the double stops some turns later, and the connection ends."""
    loop = asyncio.get_running_loop()
    await double.start()
    there = urlsplit(double.url)
    with socket.create_connection((there.hostname, there.port)) as client:
        client.setblocking(False)
        await turns(number)
        await double.stop()
        with suppress(ConnectionResetError):  # it was not accepted
            assert await asyncio.wait_for(loop.sock_recv(client, 1), 10.0) == b""


@pytest.mark.parametrize("number", TURNS)
def test_kubernetes(number: int) -> None:
    """A connection without TLS ends."""
    asyncio.run(ended(KubernetesDouble(), number))


@pytest.mark.parametrize("number", [*TURNS, 50])
def test_kubernetes_in_a_handshake(number: int, trusted: Certificate) -> None:
    """A connection ends whose TLS handshake is not finished."""
    asyncio.run(ended(KubernetesDouble(tls=trusted.server()), number))


@pytest.mark.parametrize("number", TURNS)
def test_ironic(number: int) -> None:
    """A connection ends."""
    asyncio.run(ended(IronicDouble(), number))
