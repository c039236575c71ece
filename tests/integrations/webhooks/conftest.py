"""A server, and processes of `moorage notify` that post to receivers of the tests."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from moorage.client import Client
from tests.client.leasing.pools import pool_made, serving
from tests.e2e.support.server import Server
from tests.integrations.webhooks.receiver import Receiver

Notifies = Callable[..., Server]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Return the URL of a server and its administrator's token."""
    with serving("sqlite", tmp_path_factory.mktemp("webhooks")) as where:
        yield where


@pytest.fixture
def client(served: tuple[str, str]) -> Client:
    """Return the administrator's client."""
    return Client(*served)


@pytest.fixture
def pool(client: Client) -> str:
    """Return a new pool with one unit."""
    return pool_made(client, f"hooks/{uuid4()}", ttl=600.0)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a receiver that takes everything."""
    with Receiver() as made:
        yield made


@pytest.fixture
def notifies(served: tuple[str, str], tmp_path: Path) -> Iterator[Notifies]:
    """Return a function that starts `moorage notify` with a file of hooks."""
    with ExitStack() as started:

        def start(hooks: str, **variables: str) -> Server:
            (tmp_path / "hooks.toml").write_text(hooks)
            words = ["notify", "--hooks", "hooks.toml", "--state", "state"]
            url, token = served
            server = Server(
                [sys.executable, "-m", "moorage", *words],
                {**os.environ, "MOORAGE_URL": url, "MOORAGE_TOKEN": token, **variables},
                tmp_path,
                re.compile(r"moorage: (?P<url>posting to)"),
            )
            return started.enter_context(server)

        yield start
