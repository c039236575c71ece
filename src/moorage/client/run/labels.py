"""The labels by which people recognise a lease: host, user, process, command, CI job and its page.

The names are `wire.labels.DESCRIBING`. Sources of the variables: the references of GitHub Actions,
GitLab CI/CD, Buildkite, Prow and Jenkins. Tekton sets none: its tasks can pass `--label job=...`.
`client.sh` contains this file, so it imports nothing of Moorage.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping, Sequence
from unicodedata import category
from urllib.parse import urlsplit, urlunsplit

VARIABLE = "MOORAGE_LABELS"
YES, NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")

LENGTH_MAX = 255
"""Characters of a value, see `core.limits.KEY_LENGTH_MAX`; longer ones are cut."""

COUNT_MAX = 32
"""Labels of one lease, see `core.limits.LABELS_MAX`."""

BYTES_MAX = 4_096
"""Bytes of all labels together in UTF-8, see `core.limits.LABELS_BYTES_MAX`."""

MARKS_MAX = 4
"""Combining marks in a row, see `core.limits.COMBINING_MARKS_MAX`; further ones are escaped."""

FILLERS = "\u115f\u1160\u17b4\u17b5\u3164\uffa0"
"""Letters that show nothing, see `core.texts`; they are escaped."""


def is_on(name: str, environ: Mapping[str, str], unset: bool) -> bool:
    """Return the value of a variable that is a switch; `unset`: if it is empty or missing.

    Raises ValueError.
    """
    text = environ.get(name, "").strip().lower()
    if text not in ("", *YES, *NO):
        raise ValueError(f"{name}={text!r} is not valid: set 1 or 0")
    return text in YES if text else unset


def found_labels(
    environ: Mapping[str, str], pid: int, command: Sequence[str] = ()
) -> dict[str, str]:
    """Return the labels of a request of this machine, without what it does not know.

    Args:
        environ: the environment of the job.
        pid: of the process that keeps the lease.
        command: that runs with the lease. Only the name of its program is sent: any other word
            may be a password.
    """
    labels = {"host": socket.gethostname(), "user": _user(), "pid": str(pid)}
    if command:
        labels["command"] = os.path.basename(command[0])
    job, page = _job(environ)
    labels["job"], labels["build"] = job, _address(page)
    return {name: accepted(value) for name, value in labels.items() if value}


def describing(
    environ: Mapping[str, str], pid: int, command: Sequence[str] = ()
) -> tuple[tuple[str, str], ...]:
    """Return these labels sorted by name; none if `MOORAGE_LABELS` turns them off.

    Raises ValueError.
    """
    if not is_on(VARIABLE, environ, True):
        return ()
    return tuple(sorted(found_labels(environ, pid, command).items()))


def joined(found: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return labels with these found ones, as far as there is room; given ones win."""
    room, count = BYTES_MAX - sum(map(_size, given.items())), COUNT_MAX - len(given)
    more: dict[str, str] = {}
    for label in found.items():
        if label[0] not in given and len(more) < count and _size(label) <= room:
            more.update([label])
            room -= _size(label)
    return {**more, **given}


def _size(label: tuple[str, str]) -> int:
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in label)


def _user() -> str:
    try:
        return getpass.getuser()
    except Exception:  # OSError, KeyError or ImportError: a container may have no such user
        return str(os.getuid())


def _job(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the CI job and the address of its page, empty if unknown."""
    get = environ.get
    if get("GITHUB_ACTIONS") and get("GITHUB_RUN_ID"):
        page = f"{get('GITHUB_SERVER_URL', '')}/{get('GITHUB_REPOSITORY', '')}/actions/runs/"
        page += f"{get('GITHUB_RUN_ID')}/attempts/{get('GITHUB_RUN_ATTEMPT') or 1}"
        return _both(get("GITHUB_RUN_ID"), "/", get("GITHUB_JOB")), page
    if get("GITLAB_CI") and get("CI_JOB_ID"):
        return get("CI_JOB_ID", ""), get("CI_JOB_URL", "")
    if get("BUILDKITE") and get("BUILDKITE_JOB_ID"):
        job = _both(get("BUILDKITE_PIPELINE_SLUG"), " #", get("BUILDKITE_BUILD_NUMBER"))
        page = _both(get("BUILDKITE_BUILD_URL"), "#", get("BUILDKITE_JOB_ID"))
        return job or get("BUILDKITE_JOB_ID", ""), page
    if get("PROW_JOB_ID"):  # Prow gives its jobs no address of their page
        job = _both(get("JOB_NAME"), " #", get("BUILD_ID"))
        return job or get("PROW_JOB_ID", ""), ""
    if get("JENKINS_URL") or get("BUILD_TAG", "").startswith("jenkins-"):
        return _both(get("JOB_NAME"), " #", get("BUILD_NUMBER")), get("BUILD_URL", "")
    return "", ""


def _both(first: str | None, mark: str, second: str | None) -> str:
    return f"{first}{mark}{second}" if first and second else first or ""


def _address(page: str) -> str:
    """Return an address without user, password and query; empty if it is none."""
    try:
        parts = urlsplit(page)
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return ""
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, place, parts.path, "", parts.fragment))


def accepted(value: str) -> str:
    """Return a value that the server accepts, see `printing.printable` and `core.texts`."""
    shown, marks = [], 0
    for one in value[:LENGTH_MAX]:
        marks = marks + 1 if category(one) in ("Mn", "Me") else 0
        plain = one.isprintable() and marks <= MARKS_MAX and one not in FILLERS
        shown.append(one if plain else ascii(one)[1:-1])
    return "".join(shown)[:LENGTH_MAX]
