"""A real Moorage server, and the three orchestrators in environments of their own."""

from collections.abc import Iterator

import pytest

from moorage.client import Client
from tests.client.leasing.pools import serving
from tests.orchestrators.gate import Gate
from tests.orchestrators.services.every import EVERY, orchestrator_of
from tests.orchestrators.services.orchestrator import Orchestrator


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Return the URL of a Moorage server and its administrator's token."""
    with serving("sqlite", tmp_path_factory.mktemp("moorage")) as where:
        yield where


@pytest.fixture
def client(served: tuple[str, str]) -> Client:
    """Return the administrator's client."""
    return Client(*served)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Return the gate of the runs of one test."""
    with Gate() as made:
        yield made


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one worker have all tests of an orchestrator, which then starts once."""
    for item in items:
        assert isinstance(item, pytest.Function)
        item.add_marker(pytest.mark.xdist_group(item.callspec.params["orchestrator"]))


@pytest.fixture(scope="session", params=EVERY)
def orchestrator(
    request: pytest.FixtureRequest,
    served: tuple[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Orchestrator]:
    """Return an orchestrator that executes runs."""
    name = request.param
    with orchestrator_of(name, tmp_path_factory.mktemp(name), served) as made:
        yield made
