"""Another version is built once, in an environment of its own, by its own Makefile."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench import baselines
from bench.baselines import History, NoVersion

MAKEFILE = """\
.venv/run.stamp:
\tmkdir -p .venv/bin
\tln -s "$(PYTHON)" .venv/bin/python
\techo built $(ARGS) >> built
\ttouch $@
.venv/dev.stamp: .venv/run.stamp
\techo for PostgreSQL >> built
\ttouch $@
"""
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    """Run git in a folder; return what it prints."""
    command = ["git", "-C", str(folder), *IDENTITY, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def history(tmp_path: Path) -> History:
    """A clone with two versions."""
    clone = tmp_path / "clone"
    (clone / "src" / "moorage").mkdir(parents=True)
    (clone / "Makefile").write_text(MAKEFILE)
    git(tmp_path, "init", "--quiet", str(clone))
    for text in ("old", "new"):
        (clone / "src" / "moorage" / "version").write_text(text)
        git(clone, "add", ".")
        git(clone, "commit", "--quiet", "--message", text)
    return History(clone, tmp_path / "cache")


def built(version: baselines.Version) -> list[str]:
    """Return what a version was built for, line by line."""
    return (version.source / "built").read_text().splitlines()


def test_a_commit_is_built_once_in_its_own_environment(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are those of the commit; options of the caller's make do not reach it."""
    monkeypatch.setenv("ARGS", "--quick")
    monkeypatch.setenv("MAKEFLAGS", "n")
    old = history.version("HEAD~1")
    assert (old.source / "src" / "moorage" / "version").read_text() == "old"
    assert old.commit == old.name == git(history.clone, "rev-parse", "HEAD~1")[:10]
    assert old.python.is_relative_to(old.source)
    assert Path(os.readlink(old.python)) == Path(getattr(sys, "_base_executable", ""))
    assert history.version("HEAD~1", "named").name == "named"
    assert built(old) == ["built"]
    assert built(history.version("HEAD~1", postgres=True)) == ["built", "for PostgreSQL"]
    assert history.version("HEAD").source != old.source


def test_an_interrupted_checkout_is_written_again(history: History) -> None:
    """Only a complete one is used."""
    old = history.version("HEAD~1")
    (old.source / baselines.COMPLETE).unlink()
    (old.source / "src" / "moorage" / "version").write_text("half")
    again = history.version("HEAD~1")
    assert (again.source / "src" / "moorage" / "version").read_text() == "old"
    assert built(again) == ["built"]


def test_a_version_that_does_not_build_says_why(history: History) -> None:
    """The message has the output of make."""
    (history.clone / "Makefile").write_text(".venv/run.stamp:\n\techo no wheel; exit 1\n")
    git(history.clone, "commit", "--all", "--quiet", "--message", "broken")
    with pytest.raises(NoVersion, match="no wheel"):
        history.version("HEAD")


def test_a_shallow_clone_says_how_to_get_the_history(history: History, tmp_path: Path) -> None:
    """So do a folder that is no clone, and a word that names nothing."""
    old = git(history.clone, "rev-parse", "HEAD~1")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{history.clone}", str(shallow))
    with pytest.raises(NoVersion, match="git fetch --unshallow"):
        History(shallow, tmp_path / "cache").version(old)
    bare = tmp_path / "unpacked"
    bare.mkdir()
    with pytest.raises(NoVersion, match="clone Moorage with its history"):
        History(bare, tmp_path / "cache").version(old)
    with pytest.raises(NoVersion, match="no checkout of Moorage"):
        history.version("nowhere")


def test_a_checkout_runs_in_its_own_environment(history: History) -> None:
    """Without one it gets that of this process."""
    path = str(history.clone)
    assert baselines.version(path).python == Path(sys.executable)
    own = history.clone / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.symlink_to(sys.executable)
    assert baselines.version(path).python == own
    assert re.fullmatch(r"clone \(commit \w+\) on Python [\d.]+", str(baselines.version(path)))


def test_every_baseline_is_a_whole_commit_with_a_reason() -> None:
    """A short name may become ambiguous."""
    assert baselines.named()
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in baselines.named().values())
    listed = baselines.FILE.read_text()
    assert listed.count("\nreason = ") == len(baselines.named())
