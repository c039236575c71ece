"""The labels of `moorage run` and of the functions for bash, and how others name the holder."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.wire.admission import Lease
from tests.client import single
from tests.e2e.run.test_shell import DOOR, Quay
from tests.e2e.support.carried import SECONDS, Harbour, line, tell
from tests.e2e.support.server import serve

JOB = {"GITLAB_CI": "true", "CI_JOB_ID": "4711", "CI_JOB_URL": "https://git.example/-/jobs/4711"}
HOST = socket.gethostname()
HOLDING = ("sh", "-c", "echo up; read -r _")
ON = [{}, {"MOORAGE_LABELS": "1"}]
OFF = [(("--no-labels",), {}), ((), {"MOORAGE_LABELS": "0"})]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Harbour, str]]:
    """A server with its lease proxy."""
    database = tmp_path_factory.mktemp("described") / "moorage.sqlite"
    with serve(database, "--boskos-listen", "127.0.0.1:0", "--no-access-log") as server:
        (proxy,) = DOOR.findall("".join(server.said))
        yield Harbour(server, Path(f"{database}.token").read_text().strip()), proxy


@pytest.fixture
def port(opened: tuple[Harbour, str]) -> Harbour:
    """The server."""
    return opened[0]


def held(port: Harbour, pool: str, *words: str, **variables: str) -> Lease:
    """Hold a unit with a real process; return the lease while it is held."""
    command = ("run", "--pool", pool, *words, "--", *HOLDING)
    with single.started(*command, **port.where(), **variables) as process:
        assert line(process) == "up\n"
        (lease,) = port.leases(pool)
        tell(process)
        assert process.wait(SECONDS) == 0
    return lease


@pytest.mark.parametrize("variables", ON)
def test_a_run_describes_itself(port: Harbour, variables: dict[str, str]) -> None:
    """Its lease has the labels of its process and of the CI job; a given label wins."""
    lease = held(port, port.pool(), "--label", "user=me", "--label", "x=y", **JOB, **variables)
    assert lease.labels.pop("pid").isdigit()
    assert lease.labels == {
        "host": HOST,
        "user": "me",
        "command": "sh",
        "job": "4711",
        "build": JOB["CI_JOB_URL"],
        "x": "y",
    }


@pytest.mark.parametrize(("words", "variables"), OFF)
def test_a_run_that_opts_out(
    port: Harbour, words: tuple[str, ...], variables: dict[str, str]
) -> None:
    """Then only the labels that are given are sent."""
    lease = held(port, port.pool(), *words, "--label", "x=y", **JOB, **variables)
    assert lease.labels == {"x": "y"}


def test_a_waiting_job_reads_who_holds_the_unit(port: Harbour) -> None:
    """Its first line has the id of its ticket, its place and the job that holds the unit."""
    pool = port.pool()
    command = ("run", "--pool", pool, "--", *HOLDING)
    with single.started(*command, **port.where(), **JOB) as first:
        assert line(first) == "up\n"
        with single.started(*command, **port.where()) as second:
            assert second.stderr is not None
            said = second.stderr.readline()
            _, ticket = port.leases(pool)
            assert ticket.waiting is not None
            by = f"job 4711 on {HOST} (admin)"
            assert said == (
                f"moorage: ticket {ticket.id} waits in line of {pool}: place 1;"
                f" first in line; limit: 1 of 1 unit of {pool} is held by {by}\n"
            )
            assert ticket.waiting.reason.endswith(by)
            assert by not in ticket.labels.values()
            tell(first)
            assert line(second) == "up\n"
            tell(second)
            assert second.wait(SECONDS) == 0


def test_a_lease_in_a_file_is_that_of_its_caller(port: Harbour, tmp_path: Path) -> None:
    """Its process is the calling shell, and another shell gets the same lease again."""
    pool, path = port.pool(), str(tmp_path / "h")
    words = ("lease", "acquire", "--pool", pool, "--handle", path)
    got = [single.finished(*words, **port.where(), **JOB) for _ in range(2)]
    assert [done.returncode for done in got] == [0, 0], got
    (lease,) = port.leases(pool)
    assert (lease.labels["pid"], lease.labels["job"]) == (str(os.getpid()), "4711")
    assert "command" not in lease.labels
    assert json.loads(Path(path).read_text())["leases"][0]["id"] == lease.id
    # The control: a label that is given makes it another request.
    other = single.finished(*words, "--label", "x=y", "--wait", "0", **port.where())
    assert other.returncode == 3


def test_a_key_of_another_process(port: Harbour) -> None:
    """A job that was killed and starts again with its key gets its lease, which nobody releases."""
    pool = port.pool()
    command = ("run", "--pool", pool, "--key", "mine", "--", *HOLDING)
    with single.started(*command, **port.where(), **JOB) as first:
        assert line(first) == "up\n"
        first.kill()
        first.wait(SECONDS)
    lease = held(port, pool, "--key", "mine")
    assert lease.labels["pid"] == str(first.pid)
    assert [one.id for one in port.ended(pool)] == [lease.id]


def test_the_functions_for_bash(opened: tuple[Harbour, str], tmp_path: Path) -> None:
    """They send the same labels through the lease proxy, without the command; or none."""
    quay = Quay(*opened, tmp_path)
    pool = quay.harbour.pool(limit=2)
    script = f"echo $$ $(lease__acquire --type={pool})"
    code, _, err = quay.shell(script, **JOB)
    assert code == 0, err
    (lease,) = quay.held(pool)
    assert lease.labels.pop("user")
    assert lease.labels.pop("pid").isdigit()
    assert lease.labels == {"host": HOST, "job": "4711", "build": JOB["CI_JOB_URL"]}
    code, _, err = quay.shell(script, **JOB, MOORAGE_LABELS="0")
    assert code == 0, err
    assert [one.labels for one in quay.held(pool) if one.id != lease.id] == [{}]
    err = quay.shell(script, **JOB, MOORAGE_LABELS="perhaps")[2]
    assert "MOORAGE_LABELS='perhaps' is not valid" in err
