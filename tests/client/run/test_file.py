"""The single file: its contents, and that every Python from 3.9 on can run it, isolated."""

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.client.single import BARE, PYTHON, ROOT, built, finished

OLDEST = (3, 9)
NO_OLDEST = (
    "not run on Python 3.9, which this machine does not have: make oldest-python provides it"
)
NAMES = (
    "__init__",
    "commands",
    "contexts",
    "main",
    "proxies",
    "targets",
    "tls",
    "tokens",
    "transport",
)
OPERATIONS = ("__init__", "operation", "leases", "pools", "fleet")
SUFFIXES = (".py", ".sh")


def newer_than_oldest(folder: Path) -> str:
    """Return what the sources in a folder use that the oldest Python does not have, or ""."""
    target = ".".join(map(str, OLDEST))
    program = [sys.executable, "-c", "from vermin import main; main()"]
    checked = subprocess.run(
        [*program, f"-t={target}-", "--violations", "--no-tips", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return "" if checked.returncode == 0 else checked.stdout + checked.stderr


def pythons() -> list[str]:
    """Return every Python from the oldest on that this machine has under its usual name, with those
    of pyenv and of `make oldest-python`; each version once.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = {version_of(PYTHON): PYTHON}
    for minor in range(OLDEST[1], 20):
        name = f"python3.{minor}"
        places = [ROOT / ".oldest-python", *sorted(pyenv.glob(f"3.{minor}.*/bin"))]
        for path in [shutil.which(name), *(str(place / name) for place in places)]:
            # Some machines have a launcher for a version that is not installed.
            if path and (3, minor) not in found and version_of(path) == (3, minor):
                found[3, minor] = path
    return [*found.values()]


def version_of(python: str) -> tuple[int, ...] | None:
    """Return the version of an interpreter, without the last number; None: it does not run."""
    program = "import sys; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else None


def oldest_python() -> str:
    """Return an interpreter of the oldest version; skip the test if there is none."""
    for python in pythons():
        if version_of(python) == OLDEST:
            return python
    return pytest.skip(NO_OLDEST)


def test_contents_of_the_file() -> None:
    """It has the run client, the agent, the transport and its operations, and is small."""
    with zipfile.ZipFile(built()) as archive:
        names = set(archive.namelist())
    client = ROOT / "src/moorage/client"
    inside = [path for name in ("agent", "run") for path in (client / name).rglob("*")]
    inside += [client / f"{name}.py" for name in NAMES]
    expected = {str(path.relative_to(ROOT / "src")) for path in inside if path.suffix in SUFFIXES}
    expected |= {
        "moorage/__init__.py",
        "moorage/ownership.py",
        "moorage/starting.py",
        "__main__.py",
    }
    expected |= {"moorage/systemd/__init__.py", "moorage/systemd/notifier.py"}
    expected |= {"moorage/wire/__init__.py", "moorage/wire/durations.py"}
    expected |= {f"moorage/wire/operations/{name}.py" for name in OPERATIONS}
    assert names == expected
    assert built().stat().st_size < 115_000


def test_the_build_is_reproducible(tmp_path: Path) -> None:
    """The same sources give the same bytes."""
    again = tmp_path / "again.pyz"
    subprocess.run([sys.executable, str(ROOT / "scripts/zipapp"), str(again)], check=True)
    assert again.read_bytes() == built().read_bytes()


def test_the_oldest_python_can_run_it(tmp_path: Path) -> None:
    """It uses only the language and library of the oldest Python; a planted violation is found."""
    with zipfile.ZipFile(built()) as archive:
        archive.extractall(tmp_path)
    for path in tmp_path.rglob("*.py"):
        ast.parse(path.read_text(), feature_version=OLDEST)
    assert newer_than_oldest(tmp_path) == ""
    (tmp_path / "planted.py").write_text("import itertools\nprint(itertools.pairwise('ab'))\n")
    assert "planted.py" in newer_than_oldest(tmp_path)
    with pytest.raises(SyntaxError):
        ast.parse("match 1:\n    case _: pass\n", feature_version=OLDEST)


def test_the_oldest_python_is_among_those_here() -> None:
    """The tests of every Python include the oldest one, or this test says that they do not."""
    assert oldest_python() in pythons()


@pytest.mark.parametrize("python", pythons())
def test_every_python_here_runs_it(python: str) -> None:
    """It runs a command and prints its texts, isolated from all installed packages."""
    run = finished(
        "run",
        "--unlimited-without-server",
        "-p",
        "p",
        "--",
        "sh",
        "-c",
        "echo out; exit 7",
        python=python,
    )
    assert (run.returncode, run.stdout) == (7, "out\n"), run.stderr
    assert "dry run" in run.stderr
    assert "lease__acquire()" in finished("client.sh", python=python).stdout
    help_ = finished("lease", "acquire", "--help", python=python)
    assert "--handle" in help_.stdout


def test_the_file_is_executable() -> None:
    """It is executable and prints its version."""
    path = f"{Path(sys.executable).parent}:{os.defpath}"
    done = subprocess.run(
        [str(built()), "--version"],
        env={**BARE, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("moorage ")


def test_wrong_usage_is_reported() -> None:
    """Wrong usage ends with exit code 125 for `run` and 2 for other commands."""
    for words in (["run", "--nonsense"], ["run", "--pool", "p"], ["run", "--", "true"]):
        refused = finished(*words)
        assert (refused.returncode, refused.stdout) == (125, ""), words
        assert refused.stderr.startswith("moorage: ")
        assert refused.stderr.count("\n") == 1
    assert finished("run", "--pool", "p=0", "--", "true").returncode == 125
    assert finished("run", "--pool", "p", "--hold", "soon", "--", "true").returncode == 125
    assert finished("lease", "renew", MOORAGE_URL="http://127.0.0.1:1").returncode == 2
    assert finished("nonsense").returncode == 2
    assert finished().returncode == 2


@pytest.mark.parametrize("token", ["moorage_secret\nmoorage_secret", "moorage_secret\u2019s"])
def test_a_wrong_token_is_not_shown(tmp_path: Path, token: str) -> None:
    """One line names where the token was read; the token itself must not appear in logs."""
    file = tmp_path / "token"
    file.write_text(token, encoding="utf-8")
    where = {"MOORAGE_URL": "http://127.0.0.1:1"}
    handle = ("--pool", "p", "--handle", str(tmp_path / "handle"))
    for words, variables, source in [
        ((), {"MOORAGE_TOKEN": token}, "MOORAGE_TOKEN"),
        (("--token", token), {}, "--token"),
        (("--token-file", str(file)), {}, str(file)),
    ]:
        run = finished("run", "--pool", "p", *words, "--", "true", **where, **variables)
        kept = finished("lease", "acquire", *handle, *words, **where, **variables)
        assert (run.returncode, kept.returncode) == (125, 2), source
        for message in (run.stderr, kept.stderr):
            assert message.startswith(f"moorage: {source} is not a token: ")
            assert message.count("\n") == 1
            assert "moorage_secret" not in message
