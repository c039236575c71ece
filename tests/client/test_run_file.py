"""The single file: what is in it, and that every Python from 3.9 on can run it, alone."""

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


def newer_than_oldest(folder: Path) -> str:
    """Return what the sources below a folder use that the oldest Python has not, else nothing."""
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
    """Every Python from the oldest on that this machine has under its usual name."""
    found = [PYTHON]
    for minor in range(OLDEST[1], 20):
        path = shutil.which(f"python3.{minor}")
        asked = [str(path), "-c", "import sys; print(sys.executable)"]
        # Some machines have a name for a version that is not there.
        if path and subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            found.append(path)
    return found


def test_it_has_what_it_needs_and_no_more() -> None:
    """The package and the transport are in it, nothing of the server, and it is small."""
    with zipfile.ZipFile(built()) as archive:
        names = set(archive.namelist())
    package = ROOT / "src/moorage/client/run"
    inside = [path for path in package.rglob("*") if path.suffix in (".py", ".sh")]
    expected = {str(path.relative_to(ROOT / "src")) for path in inside}
    expected |= {"moorage/__init__.py", "moorage/client/__init__.py"}
    expected |= {"moorage/client/transport.py", "__main__.py"}
    assert names == expected
    assert built().stat().st_size < 100_000


def test_it_is_made_alike_each_time(tmp_path: Path) -> None:
    """The same sources give the same bytes."""
    again = tmp_path / "again.pyz"
    subprocess.run([sys.executable, str(ROOT / "scripts/zipapp"), str(again)], check=True)
    assert again.read_bytes() == built().read_bytes()


def test_the_oldest_python_can_run_it(tmp_path: Path) -> None:
    """All of it is in the language and the library of the oldest Python; what is not is noticed."""
    with zipfile.ZipFile(built()) as archive:
        archive.extractall(tmp_path)
    for path in tmp_path.rglob("*.py"):
        ast.parse(path.read_text(), feature_version=OLDEST)
    assert newer_than_oldest(tmp_path) == ""
    (tmp_path / "planted.py").write_text("import itertools\nprint(itertools.pairwise('ab'))\n")
    assert "planted.py" in newer_than_oldest(tmp_path)
    with pytest.raises(SyntaxError):
        ast.parse("match 1:\n    case _: pass\n", feature_version=OLDEST)


@pytest.mark.parametrize("python", pythons())
def test_every_python_here_runs_it(python: str) -> None:
    """It carries a command and prints its texts, isolated from everything that is installed."""
    run = finished("run", "--pool", "p", "--", "sh", "-c", "echo out; exit 7", python=python)
    assert (run.returncode, run.stdout) == (7, "out\n"), run.stderr
    assert "dry run" in run.stderr
    assert "lease__acquire()" in finished("client.sh", python=python).stdout
    help_ = finished("lease", "acquire", "--help", python=python)
    assert "--handle" in help_.stdout


def test_it_is_a_program() -> None:
    """It can be started by its name, and says which version it is."""
    path = f"{Path(sys.executable).parent}:{os.defpath}"
    told = subprocess.run(
        [str(built()), "--version"],
        env={**BARE, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.startswith("moorage ")


def test_wrong_words_are_told() -> None:
    """Wrong usage of `run` is one of its own exit codes, of others the usual one."""
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
    """One line names where it was read; nobody finds what it is in a log."""
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
        for said in (run.stderr, kept.stderr):
            assert said.startswith(f"moorage: {source} is not a token: ")
            assert said.count("\n") == 1
            assert "moorage_secret" not in said
