"""Tables and `moorage top` as they stand on a terminal."""

import os
import signal
from pathlib import Path

import pytest

from moorage.wire.admission import PoolWanted
from tests.cli.pooled import Cli, at_terminal, ended, until
from tests.e2e.server import serve


@pytest.mark.parametrize("end", ["q", "interrupt"])
def test_top_on_a_terminal(cli: Cli, end: str) -> None:
    """It goes on until it is told to end, by a key or by Ctrl-C."""
    cli.admission.pool_put(f"live/{end}", PoolWanted(limit=1))
    with at_terminal(cli.folder, "top", "--every", "0.1") as (process, terminal):
        until(terminal, f"live/{end}".encode())
        cli.admission.pool_put(f"later/{end}", PoolWanted(limit=1))
        until(terminal, f"later/{end}".encode())
        if end == "q":
            os.write(terminal, b"q")
        else:
            process.send_signal(signal.SIGINT)
        assert ended(process, terminal) == 0


def test_top_outlives_its_server(tmp_path: Path) -> None:
    """While nobody answers it says so, and shows what it saw last."""
    database = tmp_path / "moorage.sqlite"
    (tmp_path / "moorage.toml").write_text(f'database = "sqlite:///{database}"\n')
    with serve(database, "--no-access-log") as server:
        Cli(tmp_path, server.url).admission.pool_put("outlived", PoolWanted(limit=1))
        with at_terminal(tmp_path, "top", "--every", "0.1") as (process, terminal):
            until(terminal, b"outlived")
            server.stop()
            assert b"outlived" in until(terminal, b"no answer")
            os.write(terminal, b"q")
            assert ended(process, terminal) == 0
