"""The labels of `moorage run` and of the functions for bash, and how others name the holder."""

import json
import os
import socket
from pathlib import Path

import pytest

from moorage.client.transport import RefusedError
from moorage.core.limits import KEY_LENGTH_MAX, LABELS_MAX
from moorage.wire.admission import Lease, LeaseWanted, NeedWanted
from tests.cli.tables.double import on_terminal
from tests.client import single
from tests.client.run.test_labels import BUILDKITE, GITHUB, GITLAB, JENKINS, PROW, RUN
from tests.e2e.run.test_shell import Quay
from tests.e2e.support.carried import SECONDS, Harbour, line, tell

JOB = {"GITLAB_CI": "true", "CI_JOB_ID": "4711", "CI_JOB_URL": "https://git.example/-/jobs/4711"}
HOST = socket.gethostname()
HOLDING = ("sh", "-c", "echo up; read -r _")
ON = [{}, {"MOORAGE_LABELS": "1"}]
OFF = [(("--no-labels",), {}), ((), {"MOORAGE_LABELS": "0"})]
TEKTON = {"HOME": "/tekton/home", "HOSTNAME": "shop-e2e-pod", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
SHOWN = "--label job=shop-e2e-taskrun"
"""What Tekton writes for `--label job=$(context.taskRun.name)`."""

ESCAPE, OVERRIDE, INVISIBLE = (
    "\x1b[2J\x1b]52;c;eA==\x07",
    "\u202egnp",
    "a\u200cb\u200dc",
)
"""An escape that clears the screen and one that fills the clipboard; reversed text; no width."""


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
                f" first in line; limit: 1 of 1 unit of {pool} is held by {by};"
                f" see {port.server.url}/ui/leases/{ticket.id}\n"
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


def test_the_functions_for_bash(port: Harbour, tmp_path: Path) -> None:
    """They send the same labels through the lease proxy, without the command; or none."""
    quay = Quay(port, tmp_path)
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


@pytest.mark.parametrize(
    ("variables", "words", "job", "build"),
    [
        (GITHUB, "", "4711/test", RUN),
        (GITLAB, "", "4711", GITLAB["CI_JOB_URL"]),
        (JENKINS, "", "shop/main #17", JENKINS["BUILD_URL"]),
        (PROW, "", "e2e-aws #1789", None),
        (TEKTON, SHOWN, "shop-e2e-taskrun", None),
        (TEKTON, "", None, None),
        (BUILDKITE, "", "shop #12", "https://buildkite.com/acme/shop/builds/12#0190-aa"),
    ],
    ids=["github", "gitlab", "jenkins", "prow", "tekton", "tekton-without", "buildkite"],
)
def test_a_job_of_each_ci(
    port: Harbour, variables: dict[str, str], words: str, job: str | None, build: str | None
) -> None:
    """A command in the environment of a CI holds a lease that names its job; or nothing at all."""
    pool = port.pool()
    command = ("run", "--pool", pool, *words.split(), "--", "true")
    done = single.finished(*command, **port.where(), **variables)
    assert done.returncode == 0, done.stderr
    (lease,) = port.ended(pool)
    assert (lease.labels.get("job"), lease.labels.get("build")) == (job, build)
    assert lease.labels["command"] == "true"


@pytest.mark.parametrize(("words", "variables"), OFF)
def test_a_lease_in_a_file_that_opts_out(
    port: Harbour, tmp_path: Path, words: tuple[str, ...], variables: dict[str, str]
) -> None:
    """`moorage lease acquire` sends no labels then."""
    pool = port.pool()
    command = ("lease", "acquire", "--pool", pool, "--handle", str(tmp_path / "h"), *words)
    done = single.finished(*command, **port.where(), **JOB, **variables)
    assert done.returncode == 0, done.stderr
    (lease,) = port.leases(pool)
    assert lease.labels == {}


def test_a_hostile_environment_is_made_harmless(port: Harbour) -> None:
    """What a job finds in its environment is escaped and cut, and the job starts."""
    pool = port.pool()
    hostile = {"CI_JOB_ID": ESCAPE + OVERRIDE + "x" * 400, "CI_JOB_URL": f"https://a/{ESCAPE}"}
    lease = held(port, pool, **{**GITLAB, **hostile})
    assert lease.labels["job"].startswith(r"\x1b[2J\x1b]52;c;eA==\x07\u202egnpxxx")
    assert len(lease.labels["job"]) == KEY_LENGTH_MAX
    assert all(value.isprintable() for value in lease.labels.values())


@pytest.mark.parametrize(
    "labels",
    [
        {"job": ESCAPE},
        {"holder": OVERRIDE},
        {"job": "a\u200bb"},
        {"job": "a\U000e0041"},
        {"holder": "a" + "\u0301" * 9},
        {"a\nb": "x"},
        {"host": "x" * (KEY_LENGTH_MAX + 1)},
        {f"n{number}": "" for number in range(LABELS_MAX + 1)},
    ],
    ids=["escape", "direction", "width", "tag", "marks", "name", "length", "number"],
)
def test_labels_that_could_do_harm_are_refused(port: Harbour, labels: dict[str, str]) -> None:
    """A client of another kind cannot store them: not in a lease, so in no reason either."""
    with pytest.raises(RefusedError) as refused:
        asked(port, port.pool(), "hostile", labels)
    assert refused.value.code == "invalid"


def test_what_is_invisible_is_shown_on_terminals(port: Harbour) -> None:
    """Joiners are stored, and appear as escapes: nobody passes as another."""
    pool = port.pool()
    first = asked(port, pool, "first", {"job": INVISIBLE, "host": "runner-7"})
    ticket = asked(port, pool, "second", {"holder": INVISIBLE})
    assert ticket.waiting is not None
    assert f"job {INVISIBLE} on runner-7 (admin)" in ticket.waiting.reason
    commands = [
        (200, ["lease", "list", "--pool", pool]),
        (200, ["lease", "show", first.id]),
        (200, ["lease", "why", ticket.id]),
        (200, ["top", "--once"]),
        (200, ["pool", "show", pool]),
    ]
    texts = on_terminal(
        port.server.url, commands, MOORAGE_TOKEN=port.token, NO_COLOR="1", LANG="C.UTF-8"
    )
    for text in texts:
        assert all(one.isprintable() or one == "\n" for one in text), text
        assert r"a\u200cb\u200dc" in "".join(text.split("\n" + " " * 10))


def asked(port: Harbour, pool: str, key: str, labels: dict[str, str]) -> Lease:
    """Ask for a unit with these labels."""
    needs = [NeedWanted(pool=pool, units=1)]
    return port.admission.ask(LeaseWanted(key=key, needs=needs, labels=labels))
