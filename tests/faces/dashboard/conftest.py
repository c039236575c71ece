"""A server that the tests of a module share."""

from collections.abc import Iterator

import pytest

from tests.e2e.support.server import serve
from tests.faces.v1.native import Native


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Native]:
    """Return a caller of an empty server with token authentication."""
    database = tmp_path_factory.mktemp("dashboard") / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        yield Native(server.url, database)
