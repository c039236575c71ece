"""`moorage simulate`: its output is the one that the documentation shows."""

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.wire.admission import LeaseWanted, NeedWanted, PoolWanted
from tests.cli.command import answer, refusal
from tests.cli.tables.double import on_terminal
from tests.e2e.support.server import serve
from tests.e2e.support.typed import ROOT, play, steps_of

FOLDER = Path(__file__).resolve().parents[2] / "docs/howto"
HOWTOS = [FOLDER / "choosing-limits.md", FOLDER / "adaptive-limit.md"]


def how_to_commands() -> list[tuple[str, str]]:
    """Return the commands of the how-tos, each with the output shown there."""
    text = "".join(path.read_text() for path in HOWTOS)
    blocks = re.findall(r"```console\n(.*?)```", text, re.S)
    return re.findall(r"^\$ moorage (simulate .*)\n((?:[^$].*\n)+)", "".join(blocks), re.M)


@pytest.mark.parametrize(("command", "printed"), how_to_commands())
def test_commands_of_the_how_to(command: str, printed: str) -> None:
    """Every command of the how-tos prints the output shown there, on a terminal."""
    (said,) = on_terminal("http://127.0.0.1:1", [(100, shlex.split(command))], NO_COLOR="1")
    assert said == printed


def test_the_how_to_shows_something() -> None:
    """The how-tos contain commands, so the test above compares something."""
    assert len(how_to_commands()) == 4


def test_the_two_teams_of_the_how_to(tmp_path: Path) -> None:
    """The page makes the file of jobs, and its table has columns of what the command prints."""
    page = FOLDER / "fair-share.md"
    environment = {"PATH": f"{ROOT}/.venv/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    *_, (said, code) = play(steps_of(page), tmp_path, environment)
    assert code == 0, said
    titles, *rows = [line.split("\t") for line in said.splitlines()]
    found = [dict(zip(titles, row, strict=True)) for row in rows]
    table = re.search(r"^\| owner \|.*\n\|.*\n((?:\|.*\n)+)", page.read_text(), re.M)
    assert table is not None
    columns = ("owner", "fair share", "waiting", "last start", "waited p50", "p90", "p99")
    shown = [line.strip("| ").split(" | ") for line in table[1].splitlines()]
    assert shown == [[row[column] for column in columns] for row in found]


def test_json_and_chart(tmp_path: Path) -> None:
    """`--json` prints the rows as JSON; the chart is well-formed and names every row."""
    chart = tmp_path / "chart.svg"
    arguments = ("--jobs", "40", "--hold", "10m", "--limit", "10,20", "--pacing", "none,1m")
    output = answer("simulate", *arguments, "--svg", str(chart))
    assert [(row["limit"], row["pacing"]) for row in output] == [
        (10, "none"),
        (10, "1m"),
        (20, "none"),
        (20, "1m"),
    ]
    assert output[0]["last_start_seconds"] == 30 * 60
    assert output[0]["waited_seconds"] == [10 * 60, 30 * 60, 30 * 60]
    drawn = "".join(ElementTree.parse(chart).getroot().itertext())
    for row in output:
        assert f"limit {row['limit']}, pacing {row['pacing']}" in drawn


def test_a_trace_and_a_file_of_pools(tmp_path: Path) -> None:
    """Jobs come from a trace, the pool from a file; a job that is too large is only counted."""
    (tmp_path / "jobs.csv").write_text(
        "arrive_seconds,hold_or_duration_seconds,units,owner,priority\n0,10\n0,10,2,a\n1,10,1,b,5\n"
    )
    (tmp_path / "pools.toml").write_text('[pools."a/b"]\nlimit = 1\n[pools.c]\nlimit = 2\n')
    arguments = ("--trace", "jobs.csv", "--pool", "pools.toml", "--name", "a/b")
    (row,) = answer("simulate", *arguments, directory=tmp_path)
    assert (row["jobs"], row["never"], row["last_start_seconds"]) == (3, 1, 10.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--hold", "1m"), "pass exactly one of --jobs, --trace and --replay"),
        (("--jobs", "5", "--trace", "x"), "pass exactly one of --jobs, --trace and --replay"),
        (("--jobs", "5", "--limit", "2"), "never ends in a pool without a hold"),
        (("--trace", "none.csv", "--limit", "2"), "cannot read none.csv: No such file"),
        (("--trace", "bad.csv", "--limit", "2"), "bad.csv:2: could not convert"),
        (("--jobs", "5", "--pool", "pools.toml"), "pools.toml has 2 pools: choose one with --name"),
        (("--jobs", "5", "--pool", "pools.toml", "--name", "d"), "has no pool 'd'"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    """One line says what is wrong, and the exit code is 2."""
    (tmp_path / "bad.csv").write_text("0,10\nsoon,10\n")
    (tmp_path / "pools.toml").write_text("[pools.a]\nlimit = 1\n[pools.b]\nlimit = 2\n")
    assert message in refusal(2, "simulate", *arguments, directory=tmp_path)


def test_a_replay_of_a_pool(tmp_path: Path) -> None:
    """The leases of a server's pool are replayed, first as they were, then with other limits."""
    database = tmp_path / "moorage.sqlite"
    (tmp_path / "moorage.toml").write_text(f'database = "sqlite:///{database}"\n')
    with serve(database, "--no-access-log") as server:
        token = (tmp_path / "moorage.sqlite.token").read_text().strip()
        admission = Admission(Transport(server.url, token))
        admission.pool_put("p", PoolWanted(limit=1, pacing=None))
        assert "nothing to replay" in refusal(1, "simulate", "--replay", "p", directory=tmp_path)
        need = [NeedWanted(pool="p")]
        leases = [admission.ask(LeaseWanted(needs=need, key=str(n))).id for n in range(4)]
        for lease in leases[:3]:
            admission.release(lease)
        waited = admission.ask(LeaseWanted(needs=need, key="given up")).id
        admission.release(waited)
        output = answer("simulate", "--replay", "p", "--limit", "1,3", directory=tmp_path)
    assert [(row["limit"], row["pacing"]) for row in output] == [
        (None, "as it was"),
        (1, "none"),
        (3, "none"),
    ]
    assert [row["jobs"] for row in output] == [3, 3, 3]
    assert [row["running"] for row in output[:2]] == [1, 1]
    assert output[2]["running"] > 1
    assert output[2]["waited_seconds"] == [0.0, 0.0, 0.0]


def test_a_replay_agrees_with_the_report(tmp_path: Path) -> None:
    """The row "as it was" has the figures of `pool report`: jobs, waits, starts per minute."""
    database = tmp_path / "moorage.sqlite"
    (tmp_path / "moorage.toml").write_text(f'database = "sqlite:///{database}"\n')
    with serve(database, "--no-access-log") as server:
        token = (tmp_path / "moorage.sqlite.token").read_text().strip()
        admission = Admission(Transport(server.url, token))
        admission.pool_put("p", PoolWanted(limit=3, pacing=None))
        leases = [
            admission.ask(LeaseWanted(needs=[NeedWanted(pool="p", units=1 + n % 2)], key=str(n))).id
            for n in range(9)
        ]
        for lease in leases:
            admission.outcome(lease, "ok")
            admission.release(lease)
        report = answer("pool", "report", "p", directory=tmp_path)
        actual, *_ = answer("simulate", "--replay", "p", "--limit", "3", directory=tmp_path)
    assert report["leases"] == actual["jobs"] == len(leases)
    assert report["waited"] == actual["waited_seconds"]
    rates = [line["starts_per_minute"] for line in report["outcomes"]]
    assert max(rates) == actual["starts_per_minute"]
    assert sum(line["ok"] for line in report["outcomes"]) == len(leases)
