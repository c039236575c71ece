"""Servers that the tests of a module share: one for most, one on each engine for some."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.support.server import serve
from tests.faces.v1.native import Native
from tests.support import cluster


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Native]:
    """Return a caller of an empty server with token authentication."""
    database = tmp_path_factory.mktemp("dashboard") / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        yield Native(server.url, database)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def peers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Native]]:
    """Return callers of one server, or of two that share a database; each test has own names."""
    folder = tmp_path_factory.mktemp("peers")
    shared = request.param == "postgresql"
    database = cluster.fresh() if shared else f"sqlite:///{folder}/moorage.sqlite"
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serve(database, "--no-access-log", XDG_STATE_HOME=str(folder)))
            for _ in range(2 if shared else 1)
        ]
        (token,) = folder.rglob("*.token")
        path = token.with_name(token.name.removesuffix(".token"))
        yield [Native(server.url, path) for server in servers]
