"""A server for the tests of leases, on each database."""

from collections.abc import Iterator

import pytest

from moorage.client import Client
from tests.client.leasing.pools import serving


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """Return the URL of a server and its administrator's token."""
    with serving(request.param, tmp_path_factory.mktemp("leasing")) as where:
        yield where


@pytest.fixture
def client(served: tuple[str, str]) -> Client:
    """Return the administrator's client."""
    return Client(*served)
