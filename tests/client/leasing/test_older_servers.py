"""Clients at a server that does not know what was added since."""

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.client import Client
from moorage.client.run.lease.api import Leases
from moorage.client.transport import RefusedError, Transport
from tests.client.leasing.pools import pool_made, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server on one database: these rules are the client's."""
    with serving("sqlite", tmp_path_factory.mktemp("leasing")) as where:
        yield where


class Older(Transport):
    """The way to a server that refuses `at_most`, as those before it do."""

    def request(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Send a request, unless it has what the older server does not know."""
        if isinstance(body, dict) and "at_most" in body:
            raise RefusedError(400, "invalid", "The body is invalid: unknown field `at_most`", "")
        return super().request(method, path, body, **more)


@pytest.mark.parametrize("kind", [Transport, Older])
@pytest.mark.parametrize(
    ("hold", "delay", "left"), [(60, 1200, 60), (1200, 60, 60), (None, 60, 60)]
)
def test_the_earlier_end_holds(
    client: Client,
    served: tuple[str, str],
    kind: type[Transport],
    hold: int | None,
    delay: float,
    left: float,
) -> None:
    """A delayed release moves no end back, whichever the server."""
    pool = pool_made(client, f"older/{kind.__name__}/{hold}".lower())
    with client.lease(pool, hold=None if hold is None else f"{hold}s") as lease:
        ended = Leases(kind(*served)).end_within(lease.id, lease.token, delay)
        assert ended.hold == left
