"""`moorage simulate`, run as users do; what the documentation shows is what it prints."""

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.wire.admission import LeaseWanted, NeedWanted, PoolWanted
from tests.cli.command import answer, moorage, refusal
from tests.e2e.support.server import serve

HOWTO = Path(__file__).resolve().parents[2] / "docs/howto/choosing-limits.md"


def shown() -> list[tuple[str, str]]:
    """The commands of the how-to with what they print."""
    blocks = re.findall(r"```console\n(.*?)```", HOWTO.read_text(), re.S)
    return re.findall(r"^\$ moorage (simulate .*)\n((?:[^$].*\n)+)", "".join(blocks), re.M)


@pytest.mark.parametrize(("command", "printed"), shown())
def test_what_the_how_to_shows(command: str, printed: str) -> None:
    """Every command of the how-to prints what stands there."""
    assert moorage(*shlex.split(command)).stdout == printed


def test_the_how_to_shows_something() -> None:
    """The test above has something to compare."""
    assert len(shown()) == 2


def test_json_and_chart(tmp_path: Path) -> None:
    """The same as JSON; the chart is well-formed and names every row."""
    chart = tmp_path / "chart.svg"
    arguments = ("--jobs", "40", "--hold", "10m", "--limit", "10,20", "--pacing", "none,1m")
    told = answer("simulate", *arguments, "--svg", str(chart))
    assert [(row["limit"], row["pacing"]) for row in told] == [
        (10, "none"),
        (10, "1m"),
        (20, "none"),
        (20, "1m"),
    ]
    assert told[0]["last_start_seconds"] == 30 * 60
    assert told[0]["waited_seconds"] == [10 * 60, 30 * 60, 30 * 60]
    drawn = "".join(ElementTree.parse(chart).getroot().itertext())
    for row in told:
        assert f"limit {row['limit']}, pacing {row['pacing']}" in drawn


def test_a_trace_and_a_file_of_pools(tmp_path: Path) -> None:
    """Jobs by line, a pool by its file; a job that is too large is counted, not refused."""
    (tmp_path / "jobs.csv").write_text(
        "arrive_seconds,hold_or_duration_seconds,units,owner,priority\n0,10\n0,10,2,a\n1,10,1,b,5\n"
    )
    (tmp_path / "pools.toml").write_text('[pools."a/b"]\nlimit = 1\n[pools.c]\nlimit = 2\n')
    arguments = ("--trace", "jobs.csv", "--pool", "pools.toml", "--name", "a/b")
    (row,) = answer("simulate", *arguments, directory=tmp_path)
    assert (row["jobs"], row["never"], row["last_start_seconds"]) == (3, 1, 10.0)


@pytest.mark.parametrize(
    ("arguments", "said"),
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
def test_wrong_usage(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    """One line says what is wrong, and the exit code is 2."""
    (tmp_path / "bad.csv").write_text("0,10\nsoon,10\n")
    (tmp_path / "pools.toml").write_text("[pools.a]\nlimit = 1\n[pools.b]\nlimit = 2\n")
    assert said in refusal(2, "simulate", *arguments, directory=tmp_path)


def test_a_replay_of_a_pool(tmp_path: Path) -> None:
    """What a server's pool has had comes again, first as it was and then at another limit."""
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
        told = answer("simulate", "--replay", "p", "--limit", "1,3", directory=tmp_path)
    assert [(row["limit"], row["pacing"]) for row in told] == [
        (None, "as it was"),
        (1, "none"),
        (3, "none"),
    ]
    assert [row["jobs"] for row in told] == [3, 3, 3]
    assert [row["running"] for row in told[:2]] == [1, 1]
    assert told[2]["running"] > 1
    assert told[2]["waited_seconds"] == [0.0, 0.0, 0.0]


def test_a_replay_tells_what_the_report_tells(tmp_path: Path) -> None:
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
