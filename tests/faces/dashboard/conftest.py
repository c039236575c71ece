"""Servers that the tests of a module share: one for most, one on each engine for some."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.serve.files import Files
from tests.e2e.support.server import serve
from tests.faces.v1.native import Native
from tests.support import cluster


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Native]:
    """Return a caller of an empty server with token authentication."""
    database = tmp_path_factory.mktemp("dashboard") / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        yield Native(server.url, database)


@pytest.fixture(params=["sqlite", "postgresql"])
def peers(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Native]]:
    """Return callers of an empty ledger: of one server, or of two that share a database."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    shared = request.param == "postgresql"
    database = cluster.fresh() if shared else f"sqlite:///{tmp_path}/moorage.sqlite"
    with serve(database, "--no-access-log") as one:
        token = Files(database).token
        path = token.with_name(token.name.removesuffix(".token"))
        if not shared:
            yield [Native(one.url, path)]
            return
        with serve(database, "--no-access-log") as other:
            yield [Native(one.url, path), Native(other.url, path)]
