"""A Placement face on an empty ledger."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faces.placement.support.client import Client


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Client]:
    """Yield a client of an empty service, by default with the rights of an administrator."""
    client = Client(tmp_path)
    yield client
    client.close()
