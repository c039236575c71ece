"""Pools and leases at the command line: a server is asked, and what it says is printed."""

import json
import os
import pty
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.wire.admission import LeaseWanted, NeedWanted, PoolWanted
from tests.cli.command import COMMAND, SECONDS, answer, moorage, refusal
from tests.e2e.carried import eventually
from tests.e2e.server import serve


class Cli:
    """The command line in a folder whose settings name a server's database."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        token = (folder / "moorage.sqlite.token").read_text().strip()
        self.admission = Admission(Transport(url, token))

    def answer(self, *arguments: str) -> Any:
        """Run a command with `--json` that succeeds."""
        return answer(*arguments, directory=self.folder)

    def lines(self, *arguments: str) -> list[str]:
        """Run a command for people that succeeds."""
        done = moorage(*arguments, directory=self.folder)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    def refusal(self, code: int, *arguments: str) -> str:
        """Run a command that fails."""
        return refusal(code, *arguments, directory=self.folder)

    def ask(self, *pools: str, **wanted: Any) -> str:
        """Ask for a unit of each pool; return the lease's id."""
        needs = [NeedWanted(pool=pool) for pool in pools]
        return self.admission.ask(LeaseWanted(needs=needs, key=str(uuid4()), **wanted)).id


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """Return the command line beside a running server."""
    folder = tmp_path_factory.mktemp("pools")
    database = folder / "moorage.sqlite"
    (folder / "moorage.toml").write_text(f'database = "sqlite:///{database}"\n')
    with serve(database, "--no-access-log") as server:
        yield Cli(folder, server.url)


def test_a_pool_is_made_with_its_pacing(cli: Cli) -> None:
    """What the server has chosen is printed; a second one of the name is a conflict."""
    create = ["pool", "create", "install/azure-4", "--limit", "50", "--hold", "20m"]
    assert cli.lines(*create) == [
        "made install/azure-4: limit 50, hold 20m, paced: interval 24s, burst 5"
    ]
    assert "already" in cli.refusal(4, *create)
    assert cli.lines("pool", "create", "plain", "--limit", "3") == [
        "made plain: limit 3, not paced"
    ]
    shown = dict(line.split("\t") for line in cli.lines("pool", "show", "install/azure-4"))
    assert (shown["limit"], shown["hold"], shown["pacing"]) == ("50", "20m", "24sx5")
    listed = [line.split("\t") for line in cli.lines("pool", "list")]
    assert listed[0][:3] == ["pool", "limit", "occupied"]
    assert ["plain", "3", "0", "0", "3", "-", "none", "open"] in listed


def test_every_option_of_a_pool(cli: Cli) -> None:
    """All that can be said of a pool can be said here, and changed apart from the rest."""
    options = {
        "--limit": "8",
        "--hold": "90s",
        "--ttl": "30",
        "--ttl-max": "2h",
        "--cooldown": "1.5s",
        "--pacing": "5sx2+1s",
        "--quota": "4",
        "--queue-max": "9",
        "--label": "site=a",
        "--expire": "keep",
        "--on-retry": "requeue",
    }
    made = cli.answer("pool", "create", "all", *(word for pair in options.items() for word in pair))
    expected = {
        "limit": 8,
        "hold": 90,
        "ttl": 30,
        "ttl_max": 7200,
        "cooldown": 1.5,
        "pacing": {"interval": 5, "burst": 2, "jitter": 1},
        "quota": 4,
        "queue_max": 9,
        "labels": {"site": "a"},
        "expire": "keep",
        "on_retry": "requeue",
    }
    assert {name: made[name] for name in expected} == expected
    changed = cli.answer("pool", "change", "all", "--quota", "none", "--pacing", "none")
    expected |= {"quota": None, "pacing": None}
    assert {name: changed[name] for name in expected} == expected
    for wrong in (["--limit", "x"], ["--hold", "soon"], ["--pacing", "5s6"], ["--label", "a"]):
        done = moorage("pool", "change", "all", *wrong, directory=cli.folder)
        assert (done.returncode, done.stdout) == (2, "")
    assert "limit" in cli.refusal(2, "pool", "create", "unlimited")
    assert "what to change" in cli.refusal(2, "pool", "change", "all")


def test_a_chosen_pacing_follows_the_limit(cli: Cli) -> None:
    """A pacing that came from limit and hold still does after a change; one that was said stays."""
    cli.answer("pool", "create", "auto", "--limit", "10", "--hold", "60")
    changed = cli.answer("pool", "change", "auto", "--limit", "20")
    assert changed["pacing"] == {"interval": 3, "burst": 2, "jitter": 0}
    cli.answer("pool", "change", "auto", "--pacing", "1s")
    changed = cli.answer("pool", "change", "auto", "--limit", "10")
    assert changed["pacing"] == {"interval": 1, "burst": 1, "jitter": 0}


def test_a_pool_is_paused_resumed_and_deleted(cli: Cli) -> None:
    """Each says what it has done; what is not there fails."""
    cli.answer("pool", "create", "brief", "--limit", "1")
    assert cli.lines("pool", "pause", "brief") == ["paused brief"]
    assert cli.answer("pool", "show", "brief")["paused"] is True
    assert cli.lines("pool", "resume", "brief") == ["resumed brief"]
    lease = cli.ask("brief")
    assert "in use" in cli.refusal(4, "pool", "delete", "brief")
    cli.admission.release(lease)
    assert cli.answer("pool", "delete", "brief") == {"name": "brief", "deleted": True}
    for command in ("show", "report", "pause", "resume", "delete"):
        assert "brief" in cli.refusal(1, "pool", command, "brief")


def test_leases_are_listed_shown_and_revoked(cli: Cli) -> None:
    """Who holds and who waits, and why; a lease that is taken away has ended."""
    cli.answer("pool", "create", "held", "--limit", "1")
    holder, ticket = cli.ask("held"), cli.ask("held", labels={"job": "17"})
    header, *rows = (line.split("\t") for line in cli.lines("lease", "list", "--pool", "held"))
    assert header == ["id", "owner", "state", "needs", "position", "asked", "until", "remark"]
    assert [row[:5] for row in rows] == [
        [holder, "admin", "granted", "held=1", "-"],
        [ticket, "admin", "waiting", "held=1", "1"],
    ]
    assert len(rows[1][7]) > 1
    only = cli.answer("lease", "list", "--pool", "held", "--state", "waiting", "--owner", "admin")
    assert [lease["id"] for lease in only] == [ticket]
    shown = dict(line.split("\t") for line in cli.lines("lease", "show", ticket))
    assert (shown["state"], shown["labels"], shown["position"]) == ("waiting", "job=17", "1")
    assert cli.answer("lease", "show", holder)["token"]
    assert cli.lines("lease", "revoke", holder, "--reason", "it is late") == [
        f"{holder} has ended: revoked"
    ]
    ended = cli.answer("lease", "list", "--pool", "held", "--state", "ended")
    assert [(lease["id"], lease["cause"]) for lease in ended] == [(holder, "revoked")]
    assert cli.answer("lease", "show", ticket)["state"] == "granted"
    assert "no lease" in cli.refusal(1, "lease", "show", str(uuid4()))


def test_outcomes_are_reported(cli: Cli) -> None:
    """What became of starts stands in the pool's report."""
    cli.answer("pool", "create", "told", "--limit", "2")
    first, second = cli.ask("told"), cli.ask("told")
    assert cli.lines("lease", "outcome", first, "ok") == [f"{first}: ok"]
    cli.answer("lease", "outcome", second, "throttled", "--detail", "429")
    cli.admission.release(first)
    report = cli.answer("pool", "report", "told")
    assert (report["leases"], report["causes"]) == (1, {"released": 1})
    printed = cli.lines("pool", "report", "told")
    assert printed[0] == "1 leases ended within the last 24 hours"
    assert "limit\tstarts per minute\tok\tfailed\tthrottled" in printed
    done = moorage("lease", "outcome", first, "fine", directory=cli.folder)
    assert done.returncode == 2


def test_a_pool_needs_a_limit(cli: Cli) -> None:
    """It is said what to do; the word `none` is not offered, since it could only be refused."""
    assert "--limit 50" in cli.refusal(2, "pool", "create", "limitless", "--hold", "20m")
    done = moorage("pool", "create", "limitless", "--limit", "none", directory=cli.folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "'none' is not a valid integer" in done.stderr
    assert "no pool" in cli.refusal(1, "pool", "show", "limitless")


FILE = """
[pools."applied/one"]
limit = 10
hold = "60s"

[pools."applied/two"]
limit = 2
"""


def test_apply(cli: Cli) -> None:
    """The difference is told first; to repeat it changes nothing."""
    file = cli.folder / "pools.toml"
    file.write_text(FILE)
    apply = ["apply", "-f", str(file)]
    first = ["+ applied/one", "    limit: 10", "    hold: 1m", "    pacing: 6s"]
    second = ["+ applied/two", "    limit: 2"]
    told = [*first, *second, "2 to make, 0 to change, 0 as they shall be"]
    unasked = moorage(*apply, directory=cli.folder)
    assert (unasked.returncode, unasked.stdout.splitlines()) == (2, told)
    assert "--yes" in unasked.stderr
    assert cli.lines(*apply, "--dry-run") == told
    assert "applied/one" in cli.refusal(1, "pool", "show", "applied/one")
    assert cli.lines(*apply, "--yes") == [*told, "made applied/one", "made applied/two"]
    kept = ["= applied/one", "= applied/two", "0 to make, 0 to change, 2 as they shall be"]
    assert cli.lines(*apply, "--yes") == kept
    assert cli.lines(*apply) == kept, "nobody need be asked"
    file.write_text(FILE.replace("limit = 10", "limit = 20"))
    change = cli.answer(*apply, "--dry-run")
    assert change["applied"] is False
    assert change["pools"][0]["changes"]["limit"] == {"before": 10, "after": 20}
    assert cli.answer(*apply, "--yes")["applied"] is True
    assert cli.answer("pool", "show", "applied/one")["pacing"]["interval"] == 3
    file.write_text("pools = 1")
    assert "pools.toml" in cli.refusal(2, *apply, "--yes")
    file.write_text(
        '[pools."applied/one"]\nlimit = 30\n[pools."applied/two"]\nttl = 1e9\nlimit = 1'
    )
    refused = moorage(*apply, "--yes", directory=cli.folder)
    assert refused.returncode == 2
    assert refused.stdout.endswith("changed applied/one\n")
    assert refused.stderr.startswith("moorage: pool applied/two: ttl must be")
    assert "none.toml" in cli.refusal(2, "apply", "-f", "none.toml", "--yes")


def test_top_once(cli: Cli) -> None:
    """Without a terminal it prints once: who is first, and why it waits."""
    cli.answer("pool", "create", "first", "--limit", "1")
    cli.ask("first")
    low = cli.ask("first")
    high = cli.ask("first", priority=5)
    for command in (["top"], ["top", "--once"]):
        header, *rows = (line.split("\t") for line in cli.lines(*command))
        assert header == ["pool", "in use", "waiting", "state", "first", "eta", "why"]
        (row,) = (row for row in rows if row[0] == "first")
        assert row[1:4] == ["1/1", "2", "full"]
        assert row[4].startswith("admin ")
        assert row[6] == "first in line; limit: 1 of 1 units of first are held by admin (1)"
    told = {one["name"]: one["first"] for one in cli.answer("top")}
    assert told["first"]["id"] == high
    shown = dict(line.split("\t") for line in cli.lines("pool", "show", "first"))
    assert (shown["first"], shown["why"]) == (row[4], row[6])
    for lease in (high, low):
        cli.admission.release(lease)


def test_top_tells_of_the_silent(cli: Cli) -> None:
    """Units of a pool that is kept stay in use when nobody is heard of: that is to be seen."""
    cli.answer("pool", "create", "silent", "--limit", "1", "--expire", "keep", "--ttl", "1s")
    lease = cli.ask("silent")

    def state() -> str | None:
        (row,) = (line for line in cli.lines("top") if line.startswith("silent\t"))
        return told if "unheard" in (told := row.split("\t")[3]) else None

    assert eventually(state) == "full, 1 unheard"
    cli.admission.revoke(lease)


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


def test_apply_asks_on_a_terminal(cli: Cli) -> None:
    """Without --yes nothing is changed unless it is said so."""
    file = cli.folder / "asked.toml"
    file.write_text("[pools.asked]\nlimit = 1\n")
    for word, code in ((b"n\n", 1), (b"y\n", 0)):
        with at_terminal(cli.folder, "apply", "-f", str(file)) as (process, terminal):
            until(terminal, b"[y/N]")
            os.write(terminal, word)
            assert ended(process, terminal) == code
        there = [pool.name for pool in cli.admission.pools() if pool.name == "asked"]
        assert there == ([] if code else ["asked"])


def test_without_a_server(tmp_path: Path) -> None:
    """There is nobody to ask: 5."""
    where = ["--database", f"sqlite:///{tmp_path}/moorage.sqlite"]
    file = tmp_path / "pools.toml"
    file.write_text(FILE)
    for command in (
        ["pool", "list"],
        ["pool", "create", "a", "--limit", "1"],
        ["lease", "list"],
        ["top"],
        ["apply", "-f", str(file), "--yes"],
    ):
        assert "server" in refusal(5, *command, *where)


def test_tokens_that_may_not(cli: Cli) -> None:
    """A reader may look; to change anything fails."""
    made = cli.answer("token", "create", "--name", "r", "--role", "reader")
    as_reader = ["--token", made["token"]]
    assert isinstance(json.loads(moorage_text(cli, "pool", "list", "--json", *as_reader)), list)
    assert "operator" in cli.refusal(1, "pool", "create", "x", "--limit", "1", *as_reader)


def moorage_text(cli: Cli, *arguments: str) -> str:
    """Run a command that succeeds; return what it prints."""
    done = moorage(*arguments, directory=cli.folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def at_terminal(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a command at a terminal; hand out the process and what the terminal is read by."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "50"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def until(terminal: int, words: bytes) -> bytes:
    """Read a terminal until these words stand there."""
    seen = b""
    while words not in seen:
        ready, _, _ = select.select([terminal], [], [], SECONDS)
        assert ready, seen
        seen += os.read(terminal, 65_536)
    return seen


def ended(process: subprocess.Popen[bytes], terminal: int) -> int:
    """Wait for a command's end, reading what it still writes; return its exit code."""
    deadline = monotonic() + SECONDS
    while process.poll() is None:
        assert monotonic() < deadline
        if select.select([terminal], [], [], 0.05)[0]:
            os.read(terminal, 65_536)
    return process.returncode
