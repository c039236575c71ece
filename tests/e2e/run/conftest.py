"""One server for all tests of `moorage run` that do not stop it; each uses its own pools."""

from collections.abc import Iterator

import pytest

from tests.e2e.support.carried import Harbour, harbour

SLOTTED = "resources:\n- {type: slotted, state: free, names: [s1, s2, s3]}\n"


@pytest.fixture(scope="session")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    """A server with its lease proxy, and a pool with three slots for one of the tests."""
    folder = tmp_path_factory.mktemp("port")
    config = folder / "boskos.yaml"
    config.write_text(SLOTTED)
    with harbour(folder, "--boskos-listen", "127.0.0.1:0", "--boskos-config", str(config)) as found:
        yield found
