"""What the tests of simulated worlds share."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet() -> Iterator[None]:
    """Silence the programs, which log whatever goes wrong in their world."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
