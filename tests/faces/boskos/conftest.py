"""Both ways of compatibility with Boskos, each with a server that all tests share."""

import pytest

from tests.faces.boskos.boskos_server import BoskosServer


@pytest.fixture(scope="module", params=["safe", "strict"])
def boskos(
    request: pytest.FixtureRequest, safe_boskos: BoskosServer, strict_boskos: BoskosServer
) -> BoskosServer:
    """Return the server of each of the two ways; a test has types of its own."""
    return strict_boskos if request.param == "strict" else safe_boskos
