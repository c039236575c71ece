"""The labels that `moorage run` finds: what each CI tells, and that no secret is among them."""

import socket
from getpass import getuser
from pathlib import Path

import pytest

from moorage.client.run import labels
from moorage.client.run.api_types import LeaseRequest
from moorage.client.run.handles.acquiring import _like
from moorage.client.run.handles.file import Handle, HandleEntry
from moorage.client.run.labels import found_labels, is_on, joined
from moorage.client.run.parse import UsageError, wish_of
from moorage.core import limits
from moorage.core.errors import Error
from moorage.core.labels import check_labels, cut_to_fit
from moorage.core.limits import COMBINING_MARKS_MAX
from moorage.wire.labels import DESCRIBING

HERE = {"host": socket.gethostname(), "user": getuser(), "pid": "7"}
WORDS = {
    **dict.fromkeys(("ttl", "hold", "priority", "patience", "unreachable_after")),
    "pool": ["a"],
    "label": [],
    "no_labels": False,
}
RUN = "https://github.com/acme/shop/actions/runs/4711/attempts/2"
GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "acme/shop",
    "GITHUB_RUN_ID": "4711",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_JOB": "test",
}
GITLAB = {
    "GITLAB_CI": "true",
    "CI_JOB_ID": "4711",
    "CI_JOB_URL": "https://git.example/acme/shop/-/jobs/4711",
}
BUILDKITE = {
    "BUILDKITE": "true",
    "BUILDKITE_JOB_ID": "0190-aa",
    "BUILDKITE_PIPELINE_SLUG": "shop",
    "BUILDKITE_BUILD_NUMBER": "12",
    "BUILDKITE_BUILD_URL": "https://buildkite.com/acme/shop/builds/12",
}
PROW = {"PROW_JOB_ID": "6e0f", "JOB_NAME": "e2e-aws", "BUILD_ID": "1789", "BUILD_NUMBER": "1789"}
JENKINS = {
    "JENKINS_URL": "https://ci.example/",
    "JOB_NAME": "shop/main",
    "BUILD_NUMBER": "17",
    "BUILD_URL": "https://ci.example/job/shop/job/main/17/",
}


@pytest.mark.parametrize(
    ("environ", "job", "build"),
    [
        (GITHUB, "4711/test", RUN),
        (GITLAB, "4711", GITLAB["CI_JOB_URL"]),
        (BUILDKITE, "shop #12", "https://buildkite.com/acme/shop/builds/12#0190-aa"),
        (PROW, "e2e-aws #1789", None),
        (JENKINS, "shop/main #17", JENKINS["BUILD_URL"]),
        ({**JENKINS, "JENKINS_URL": "", "BUILD_TAG": "jenkins-x-17"}, "shop/main #17", ...),
        ({"JOB_NAME": "x", "BUILD_URL": "https://x"}, None, None),
        ({"CI": "true"}, None, None),
    ],
)
def test_each_ci_names_its_job(environ: dict[str, str], job: str | None, build: object) -> None:
    """The job is what its CI shows, the page where it shows it; elsewhere there is neither."""
    found = found_labels(environ, 7)
    assert found.get("job") == job
    if build is not ...:
        assert found.get("build") == build
    assert {name: found[name] for name in HERE} == HERE
    assert set(found) <= DESCRIBING


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["openshift-install", "create", "cluster"], "openshift-install"),
        (["/usr/bin/make", "test"], "make"),
        (["mytool", "hunter"], "mytool"),
        (["sh", "-c", "curl -H 'Token: hunter2'"], "sh"),
        (["deploy", "--token", "hunter2"], "deploy"),
        (["deploy", "password=hunter2"], "deploy"),
        (["git", "https://alice:hunter2@git.example/x"], "git"),
        (["login", "hunter2"], "login"),
        (["login", "Secret"], "login"),
        (["login", "correcthorsebatterystaple"], "login"),
        (["/opt/a\x1b[31mb"], "a\\x1b[31mb"),
        (["x" * 300], "x" * 255),
    ],
)
def test_the_command_without_its_arguments(command: list[str], shown: str) -> None:
    """Only the program's name is sent: any other word may be a password."""
    found = found_labels({}, 7, command)
    assert found["command"] == shown
    check_labels(found)


def test_an_address_loses_its_password_and_its_query() -> None:
    """What a CI puts into the address of a page may be seen by everybody who sees the lease."""
    page = "https://alice:hunter2@git.example:8443/jobs/1?private_token=hunter2#log"
    found = found_labels({**GITLAB, "CI_JOB_URL": page}, 7)
    assert found["build"] == "https://git.example:8443/jobs/1#log"
    for odd in ("javascript:alert(1)", "https://", "//x", "https://[x", ""):
        assert "build" not in found_labels({**GITLAB, "CI_JOB_URL": odd}, 7)


def test_values_are_cut_and_never_refused() -> None:
    """The server accepts every found value; the limits are those of the core."""
    found = found_labels({**GITLAB, "CI_JOB_ID": "\x1b[2J\u202e\udc80" + "x" * 999}, 7)
    check_labels(found)
    assert len(found["job"]) == labels.LENGTH_MAX
    assert (labels.LENGTH_MAX, labels.COUNT_MAX) == (limits.KEY_LENGTH_MAX, limits.LABELS_MAX)
    for odd in ("a" + "\u0301" * 99, "\U0001f3f4\U000e0067\U000e007f", "\ufeff\u200b\u00ad"):
        check_labels(found_labels({**GITLAB, "CI_JOB_ID": odd}, 7))
    assert labels.MARKS_MAX == COMBINING_MARKS_MAX


def test_given_labels_win() -> None:
    """They replace found ones of the same name, and found ones fill only the room that is left."""
    assert joined({"job": "1", "host": "h"}, {"job": "x"}) == {"job": "x", "host": "h"}
    many = {f"n{number}": "" for number in range(limits.LABELS_MAX - 1)}
    both = joined(HERE, many)
    assert len(both) == limits.LABELS_MAX
    assert many.items() <= both.items()
    check_labels(both)
    over = {**many, "x": "", "y": ""}
    assert joined(HERE, over) == over, "too many given ones are for the server to refuse"


def test_the_ways_to_opt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the option or the variable nothing is found; without them it is (the control)."""
    monkeypatch.delenv("MOORAGE_LABELS", raising=False)
    given = {**WORDS, "label": ["a=b"]}
    assert dict(wish_of(given, 7).about)["pid"] == "7"
    assert wish_of({**given, "no_labels": True}, 7).body("k")["labels"] == {"a": "b"}
    for off in ("0", "no", "OFF"):
        monkeypatch.setenv("MOORAGE_LABELS", off)
        assert wish_of(given, 7).body("k")["labels"] == {"a": "b"}
    monkeypatch.setenv("MOORAGE_LABELS", "")
    assert wish_of(given, 7).body("k")["labels"].keys() >= HERE.keys()
    monkeypatch.setenv("MOORAGE_LABELS", "nope")
    with pytest.raises(UsageError, match="MOORAGE_LABELS='nope' is not valid: set 1 or 0"):
        wish_of(given, 7)


def test_switches() -> None:
    """An empty variable is like a missing one."""
    assert is_on("X", {}, unset=True)
    assert not is_on("X", {"X": " "}, unset=False)
    assert is_on("X", {"X": "Yes"}, unset=False)


def test_the_same_request_of_another_process(tmp_path: Path) -> None:
    """A file of leases finds an equal request of another process again; its labels stay."""
    handle = Handle(str(tmp_path / "h"))
    mine = LeaseRequest((("a", 1),), labels=(("x", "y"),), about=(("pid", "1"),))
    with handle.locked():
        handle.put(HandleEntry("k", mine))
    (entry,) = handle.entries()
    assert entry.wish == mine
    assert _like([entry], mine._replace(about=(("pid", "2"),))) == entry
    assert _like([entry], mine._replace(labels=())) is None


def test_all_labels_together_are_bounded() -> None:
    """More than 4 KiB are refused, and the message says so; found ones are left out before that."""
    mark = "\U0001f980"
    labels = {f"n{n}": mark * 100 for n in range(10)}
    check_labels(labels)
    with pytest.raises(Error, match="4096 bytes in UTF-8, names included, not 4424"):
        check_labels(labels | {"more": mark * 100})
    joint = joined({f"found{n}": mark * 100 for n in range(9)}, {"own": mark * 255})
    check_labels(joint)
    assert {"own", "found0", "found6"} <= joint.keys() and "found7" not in joint
    cut = cut_to_fit({f"n{n}": mark * 300 for n in range(32)})
    check_labels(cut)
    assert [*cut] == [f"n{n}" for n in range(4)]
