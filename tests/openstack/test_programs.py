"""Our programs beside the originals: the same command lines, exit codes and outputs.

ORIGINAL names the folder of the original's programs.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.openstack.test_programs import CONF, run

ORIGINAL = Path(os.environ["ORIGINAL"])
NAMES = {"manage": "placement-manage", "status": "placement-status"}


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a configuration with two databases, which both programs have brought up to date."""
    folder = tmp_path_factory.mktemp("programs")
    file = folder / "placement.conf"
    file.write_text(CONF.format(folder=folder))
    for done in both(file, "manage", "db", "sync"):
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return file


def both(conf: Path | None, program: str, *words: str) -> list[subprocess.CompletedProcess[str]]:
    """Run our program and the original."""
    given = [] if conf is None else ["--config-file", str(conf)]
    theirs = subprocess.run(
        [str(ORIGINAL / NAMES[program]), *given, *words],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": "/nonexistent"},
    )
    return [run(conf, program, *words), theirs]


@pytest.mark.parametrize(
    "line",
    [
        "manage db sync",
        "manage db stamp head",
        "manage db online_data_migrations",
        "manage db online_data_migrations --max-count 5",
        "manage db online_data_migrations --max-count 0",
        "manage db online_data_migrations --max-count=-3",
        "manage db online_data_migrations --max-count many",
        "manage --debug --log-file /dev/null db sync",
        "status upgrade check",
        "status upgrade check --json",
        "status upgrade --json check",
    ],
)
def test_the_same_output(conf: Path, line: str) -> None:
    """To the byte, with the same exit code."""
    ours, theirs = both(conf, *line.split())
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)


@pytest.mark.parametrize(
    "line",
    [
        "manage",
        "manage db",
        "manage db --help",
        "manage --help",
        "manage db nothing",
        "manage nothing",
        "manage db stamp",
        "manage db stamp nonsense",
        "manage --nothing",
        "manage --version",
        "status",
        "status upgrade",
        "status --version",
    ],
)
def test_the_same_exit_code(conf: Path, line: str) -> None:
    """And output on the same stream: errors and tracebacks have other words."""
    ours, theirs = both(conf, *line.split())
    assert ours.returncode == theirs.returncode, ours.stderr
    assert bool(ours.stdout) == bool(theirs.stdout)


def test_without_a_configuration() -> None:
    """Both end with 1: there is no database to work on. So they do if the file is missing."""
    for conf in (None, Path("/nonexistent/placement.conf")):
        ours, theirs = both(conf, "manage", "db", "version")
        assert ours.returncode == theirs.returncode == 1


def test_before_the_first_sync(tmp_path: Path) -> None:
    """There is no version, and no check succeeds."""
    file = tmp_path / "placement.conf"
    file.write_text(CONF.format(folder=tmp_path))
    ours, theirs = both(file, "manage", "db", "version")
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout) == (0, "None\n")
    ours, theirs = both(file, "status", "upgrade", "check")
    assert ours.returncode == theirs.returncode == 255
    assert ours.stdout.startswith("Error:\n")
    assert theirs.stdout.startswith("Error:\n")
    ours, theirs = both(file, "manage", "db", "online_data_migrations")
    assert ours.returncode == theirs.returncode == 2
    assert ours.stdout.splitlines()[-1] == theirs.stdout.splitlines()[-1]


def test_a_policy_file_in_json(conf: Path) -> None:
    """Its check fails, with the same text."""
    policy = conf.with_name("policy.yaml")
    policy.write_text(json.dumps({"admin_api": "role:admin"}))
    try:
        ours, theirs = both(conf, "status", "upgrade", "check")
    finally:
        policy.unlink()
    assert ours.returncode == theirs.returncode == 2
    assert ours.stdout == theirs.stdout
