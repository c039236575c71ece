"""Servers that many tests share; each test has its own types."""

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
"""


@pytest.fixture(scope="module", params=["safe", "strict"])
def boskos(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BoskosServer]:
    """Yield a server for each of the two ways of compatibility."""
    folder = tmp_path_factory.mktemp("boskos")
    with serve_boskos(folder, request.param, configuration(DYNAMIC)) as one:
        yield one


@pytest.fixture(scope="module")
def strict_boskos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoskosServer]:
    """Yield a server that behaves exactly as Boskos."""
    with serve_boskos(tmp_path_factory.mktemp("strict"), "strict") as one:
        yield one


@pytest.fixture(scope="module")
def safe_boskos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoskosServer]:
    """Yield a server that avoids Boskos' races."""
    with serve_boskos(tmp_path_factory.mktemp("safe"), "safe") as one:
        yield one
