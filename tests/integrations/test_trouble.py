"""Why a connection failed is said in a few words."""

import asyncio

import pytest

from moorage.client.transport import UnreachableError
from moorage.integrations.ironic.nodes import IronicError, NodeReader
from moorage.integrations.lease_api import LeaseApi


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:1", "Connection refused"),
        ("127.0.0.1:6385", "this is not an http:// or https:// address"),
    ],
)
def test_reasons(url: str, reason: str) -> None:
    """Operators read the reason, not what the client's library keeps about the connection."""

    async def moorage() -> None:
        async with LeaseApi(url, None) as api:
            await api.pool("deploy")

    async def ironic() -> None:
        async with NodeReader(url) as nodes:
            await nodes.all(["uuid"])

    for ask, kind in ((moorage, UnreachableError), (ironic, IronicError)):
        with pytest.raises(kind) as error:
            asyncio.run(ask())
        text = str(error.value)
        assert text.startswith(f"no answer from {url}: {reason}")
        assert "(" not in text and len(text) < 120
