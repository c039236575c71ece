"""Tables and `moorage top` as they stand on a terminal."""

import os
import signal
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from moorage.cli.support.output import drawn
from moorage.wire.admission import PoolWanted
from tests.cli.pooled import Cli, at_terminal, ended, shown, until
from tests.e2e.support.server import serve


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


def test_ids_and_pools_are_whole_on_a_narrow_terminal(cli: Cli) -> None:
    """80 columns: what `lease revoke` and `pool show` need can be copied as it stands there."""
    pools = ("install/azure-eastus-4", "narrow/other")
    for pool in pools:
        # A dozen commands on a busy machine outlast the usual minute.
        cli.admission.pool_put(pool, PoolWanted(limit=1, ttl=3_600))
    holder, ticket = cli.ask(*pools), cli.ask(*pools, patience=3_600)
    for columns in (60, 80, 120, 200):
        listed = shown(cli.folder, "lease", "list", "--pool", pools[0], columns=columns)
        words = [word for line in listed for word in line.split()]
        assert {holder, ticket, *(f"{pool}=1" for pool in pools)} <= {*words}
        assert max(map(len, listed)) <= columns
        for command in (["top", "--once"], ["pool", "list"]):
            lines = shown(cli.folder, *command, columns=columns)
            assert {*pools} <= {word for line in lines for word in line.split()}
            assert "…" not in "".join(lines)
    for lease in (ticket, holder):
        cli.admission.revoke(lease)


def test_a_table_that_does_not_fit() -> None:
    """Each row is a block then, a line for each column; square brackets are text."""
    rows = [["a" * 12, "[b]c", "-"], ["d", "e" * 30, "f"]]
    console = Console(width=24, record=True, file=StringIO())
    console.print(drawn(["name", "second", "third"], rows, console.width))
    lines = [line.split() for line in console.export_text().splitlines()]
    assert lines == [
        ["name", "a" * 12],
        ["second", "[b]c"],
        ["third", "-"],
        [],
        ["name", "d"],
        ["second", "e" * 14],
        ["e" * 14],
        ["e" * 2],
        ["third", "f"],
    ]
