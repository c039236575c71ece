"""The health check of the images, beside a server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.support.server import serve

SCRIPT = Path(__file__).parents[2] / "scripts" / "container-health"


def checked(listen: str) -> subprocess.CompletedProcess[str]:
    """Run the check for this setting."""
    environment = {**os.environ, "MOORAGE_LISTEN": listen, "http_proxy": "http://192.0.2.1:9"}
    return subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "0.0.0.0"])
def test_it_asks_where_the_server_listens(tmp_path: Path, host: str) -> None:
    """Nothing answers on other addresses; after the end of the server, nothing does there."""
    with serve(tmp_path / "m.sqlite", "--listen", f"{host}:0") as server:
        listen = f"{host}:{server.url.rpartition(':')[2]}"
        found = checked(listen)
        assert found.returncode == 0, found.stderr
    assert checked(listen).stderr.startswith("no answer: ")
