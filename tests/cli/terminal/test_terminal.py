"""Tables and `moorage top` at a terminal."""

import os
import signal
from pathlib import Path

import pytest

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


def test_names_are_not_cut_and_ids_can_be_used(cli: Cli) -> None:
    """On 80 columns names of pools can be copied, and what is shown of an id finds its lease."""
    pools = ("install/azure-eastus-4", "narrow/other")
    for pool in pools:
        # A dozen commands on a busy machine take longer than the default TTL of a minute.
        cli.admission.pool_put(pool, PoolWanted(limit=1, ttl=3_600))
    holder, ticket = cli.ask(*pools), cli.ask(*pools, patience=3_600)
    for columns in (60, 80, 200):
        listed = lines_at_terminal(cli.folder, "lease", "list", "--pool", pools[0], columns=columns)
        assert max(map(len, listed)) <= columns
        if columns == 60:
            continue
        for line, lease in zip(listed[1:3], (holder, ticket), strict=True):
            words = line.split()
            assert {*pools} <= {*words}
            assert cli.answer("lease", "show", words[0])["id"] == lease
    for command in (["top", "--once"], ["pool", "list"]):
        lines = lines_at_terminal(cli.folder, *command, columns=60)
        assert {*pools} <= {line.split()[0] for line in lines}
        assert max(map(len, lines)) <= 60
    for lease in (ticket, holder):
        cli.admission.revoke(lease)
