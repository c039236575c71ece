"""One server for many tests: each has types of its own."""

from collections.abc import Iterator

import pytest

from tests.faces.boskos.ground import Ground, configuration, ground

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
def there(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ground]:
    """Both ways of being compatible."""
    folder = tmp_path_factory.mktemp("boskos")
    with ground(folder, request.param, configuration(DYNAMIC)) as one:
        yield one


@pytest.fixture(scope="module")
def strictly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Exactly as Boskos."""
    with ground(tmp_path_factory.mktemp("strict"), "strict") as one:
        yield one


@pytest.fixture(scope="module")
def safely(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Better than Boskos."""
    with ground(tmp_path_factory.mktemp("safe"), "safe") as one:
        yield one
