"""Starts both sides once for the tests of this folder."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.compare import sides


@pytest.fixture(scope="session")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """The URL of the original, and Moorage's by engine."""
    folder: Path = tmp_path_factory.mktemp("compare")
    with ExitStack() as stack:
        original = stack.enter_context(sides.original(folder / "original"))
        ours = stack.enter_context(sides.ours(folder / "ledger"))
        yield original.url, {"sqlite": ours.url}
