"""Servers that the tests of Boskos and of the lease proxy share; each test has its own types."""

from collections.abc import Iterator

import pytest

from tests.faces.boskos.boskos_server import BoskosServer, configuration, serve_boskos

DYNAMIC = """
- type: growing
  state: dirty
  min-count: 0
  max-count: 2
  lifespan: 1h
- type: kept
  min-count: 2
  max-count: 4
- type: new
  min-count: 0
  max-count: 1
"""


@pytest.fixture(scope="session")
def safe_boskos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoskosServer]:
    """Return a server that avoids Boskos' races, with its default settings."""
    with serve_boskos(tmp_path_factory.mktemp("safe"), "safe", configuration(DYNAMIC)) as one:
        yield one


@pytest.fixture(scope="session")
def strict_boskos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoskosServer]:
    """Return a server that behaves exactly as Boskos."""
    with serve_boskos(tmp_path_factory.mktemp("strict"), "strict", configuration(DYNAMIC)) as one:
        yield one
