"""Ends the MariaDB of a test run."""

from collections.abc import Iterator

import pytest

from tests.moving.support import engines


@pytest.fixture(scope="session", autouse=True)
def _ended() -> Iterator[None]:
    """End it, if it was started."""
    yield
    if engines.mariadb.cache_info().currsize:
        engines.mariadb().close()
