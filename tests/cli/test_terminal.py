"""Tables and `moorage top` at a terminal."""

import os
import signal
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from moorage.cli.support.output import drawn
from moorage.wire.admission import PoolWanted
from tests.cli.pooled import Cli, at_terminal, exit_code_of, lines_at_terminal, read_until
from tests.e2e.support.server import serve


@pytest.mark.parametrize("end", ["q", "interrupt"])
def test_top_on_a_terminal(cli: Cli, end: str) -> None:
    """It runs until the user ends it, with a key or Ctrl-C."""
    cli.admission.pool_put(f"live/{end}", PoolWanted(limit=1))
    with at_terminal(cli.folder, "top", "--every", "0.1") as (process, terminal):
        read_until(terminal, f"live/{end}".encode())
        cli.admission.pool_put(f"later/{end}", PoolWanted(limit=1))
        read_until(terminal, f"later/{end}".encode())
        if end == "q":
            os.write(terminal, b"q")
        else:
            process.send_signal(signal.SIGINT)
        assert exit_code_of(process, terminal) == 0


def test_top_outlives_its_server(tmp_path: Path) -> None:
    """Without a server it reports this and still shows the last state."""
    database = tmp_path / "moorage.sqlite"
    (tmp_path / "moorage.toml").write_text(f'database = "sqlite:///{database}"\n')
    with serve(database, "--no-access-log") as server:
        Cli(tmp_path, server.url).admission.pool_put("outlived", PoolWanted(limit=1))
        with at_terminal(tmp_path, "top", "--every", "0.1") as (process, terminal):
            read_until(terminal, b"outlived")
            server.stop()
            assert b"outlived" in read_until(terminal, b"no answer")
            os.write(terminal, b"q")
            assert exit_code_of(process, terminal) == 0


def test_ids_and_names_are_not_cut_on_a_narrow_terminal(cli: Cli) -> None:
    """Ids and names of pools are never cut, so that they can be copied to other commands."""
    pools = ("install/azure-eastus-4", "narrow/other")
    for pool in pools:
        # A dozen commands on a busy machine take longer than the default TTL of a minute.
        cli.admission.pool_put(pool, PoolWanted(limit=1, ttl=3_600))
    holder, ticket = cli.ask(*pools), cli.ask(*pools, patience=3_600)
    for columns in (60, 80, 120, 200):
        listed = lines_at_terminal(cli.folder, "lease", "list", "--pool", pools[0], columns=columns)
        words = [word for line in listed for word in line.split()]
        assert {holder, ticket, *(f"{pool}=1" for pool in pools)} <= {*words}
        assert max(map(len, listed)) <= columns
        for command in (["top", "--once"], ["pool", "list"]):
            lines = lines_at_terminal(cli.folder, *command, columns=columns)
            assert {*pools} <= {word for line in lines for word in line.split()}
            assert "…" not in "".join(lines)
    for lease in (ticket, holder):
        cli.admission.revoke(lease)


def test_a_table_that_does_not_fit() -> None:
    """A table that is too wide becomes blocks of one line per column; square brackets are text."""
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
