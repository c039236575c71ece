"""A ticket that somebody has withdrawn or revoked raises its own error, and nobody asks again."""

import asyncio
from collections.abc import Iterator

import pytest

from moorage.client import AsyncClient, Client, NotGrantedError, RevokedError, WithdrawnError
from tests.client.leasing.pools import in_thread, leases, pool_made, serving, waiting

SECONDS = 30.0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server on one database: these rules are the client's."""
    with serving("sqlite", tmp_path_factory.mktemp("leasing")) as where:
        yield where


@pytest.mark.parametrize("key", [None, "mine"])
@pytest.mark.parametrize(("revoked", "error"), [(False, WithdrawnError), (True, RevokedError)])
def test_a_block(
    client: Client, key: str | None, revoked: bool, error: type[NotGrantedError]
) -> None:
    """The error says who or why; the pool has nothing more of this program."""
    pool = pool_made(client, f"withdrawn/{key}/{revoked}".lower())
    with client.lease(pool):
        thread, results = in_thread(client.lease(pool, key=key))
        ticket = waiting(client, pool)
        if revoked:
            client.admission.revoke(ticket.id, "by admin")
        else:
            client.admission.release(ticket.id)
        thread.join(SECONDS)
        (raised,) = results
        assert isinstance(raised, error), raised
        assert "by admin" in str(raised)
        assert [one.state for one in leases(client, pool)] == ["granted", "ended"]


def test_an_asynchronous_block(served: tuple[str, str], client: Client) -> None:
    """The same for asyncio."""
    pool = pool_made(client, "withdrawn/async")

    async def ask() -> None:
        async with AsyncClient(*served).lease(pool):
            raise AssertionError("it was never granted")

    async def withdrawn() -> None:
        task = asyncio.create_task(ask())
        ticket = await asyncio.to_thread(waiting, client, pool)
        await asyncio.to_thread(client.admission.release, ticket.id)
        with pytest.raises(WithdrawnError, match="by admin"):
            await asyncio.wait_for(task, SECONDS)

    with client.lease(pool):
        asyncio.run(withdrawn())
        assert [one.state for one in leases(client, pool)] == ["granted", "ended"]
