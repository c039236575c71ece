"""The fixture of tests that run on both engines."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import cluster


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the address of an unused database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/m.sqlite"
        return
    made = cluster.fresh()
    yield made
    cluster.shared().drop(cluster.database_of(made))
