"""Fixtures of the tests of pool commands."""

from collections.abc import Iterator

import pytest

from tests.cli.pooled import Cli
from tests.e2e.support.server import serve


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """Return the command line in the folder of a running server."""
    folder = tmp_path_factory.mktemp("pools")
    database = folder / "moorage.sqlite"
    (folder / "moorage.toml").write_text(f'database = "sqlite:///{database}"\n')
    with serve(database, "--no-access-log") as server:
        yield Cli(folder, server.url)
