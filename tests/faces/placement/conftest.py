"""A face on an empty ledger."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faces.placement.support.client import Client


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Client]:
    """Ask the Placement API of an empty service, as its administrator by default."""
    client = Client(tmp_path)
    yield client
    client.close()
