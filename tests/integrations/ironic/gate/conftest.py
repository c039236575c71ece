"""A gate without Moorage, before an upstream that speaks byte by byte."""

from collections.abc import Iterator

import pytest

from tests.e2e.support.server import Server
from tests.integrations.ironic.gate.gates import gate
from tests.integrations.ironic.gate.raw_upstream import RawUpstream


@pytest.fixture(scope="module")
def upstream() -> Iterator[RawUpstream]:
    """An upstream that records what it gets."""
    with RawUpstream() as made:
        yield made


@pytest.fixture(scope="module")
def proxy(upstream: RawUpstream) -> Iterator[Server]:
    """A gate before it, without Moorage."""
    with gate(upstream.url) as made:
        yield made
