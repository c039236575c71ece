"""Other versions of Moorage, each in an environment of its own.

A version is a checkout, or a commit of this repository's history. A commit is written to the folder
`.baselines`, where it builds the environment of its own lock files, as its users do; both are used
again. So a version runs with the packages of its time, whatever has become of them since.
"""

import fcntl
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import machine
from bench.target import ROOT

FILE = Path(__file__).with_name("baselines.toml")
CACHE = ROOT / ".baselines"
COMPLETE = ".complete"
"""A file that is written last: a checkout without it was interrupted."""

SERVER_TARGET, POSTGRES_TARGET = ".venv/run.stamp", ".venv/dev.stamp"
"""What make builds in every version: what serves, and what it needs for PostgreSQL, too."""


class NoVersion(Exception):
    """There is no such version, or it cannot be built; the message says what to do."""


@dataclass(frozen=True)
class Version:
    """A version that can be started."""

    name: str
    commit: str
    source: Path
    python: Path

    def __str__(self) -> str:
        done = subprocess.run(
            [self.python, "-c", "import platform; print(platform.python_version())"],
            capture_output=True,
            text=True,
            check=False,
        )
        commit = "" if self.commit.startswith(self.name) else f" (commit {self.commit})"
        return f"{self.name}{commit} on Python {done.stdout.strip() or 'unknown'}"


def this() -> Version:
    """Return this version, with the environment of this process."""
    return Version("this version", machine.code(ROOT), ROOT, Path(sys.executable))


def named() -> dict[str, str]:
    """Return the commits of all baselines by name."""
    listed = tomllib.loads(FILE.read_text())["baselines"]
    return {name: one["commit"] for name, one in listed.items()}


def version(word: str, *, postgres: bool = False) -> Version:
    """Return the version that a word names: a baseline, a checkout, or a commit.

    `postgres`: whether it must be able to use PostgreSQL. Raises NoVersion.
    """
    if (Path(word) / "src" / "moorage").is_dir():
        return checkout(Path(word).resolve())
    known = named()
    name = word if word in known else ""
    return History().version(known.get(word, word), name, postgres=postgres)


def checkout(source: Path) -> Version:
    """Return the version of a checkout; without an environment of its own, it gets this one's."""
    own = source / ".venv" / "bin" / "python"
    python = own if own.exists() else Path(sys.executable)
    return Version(source.name, machine.code(source), source, python)


@dataclass(frozen=True)
class History:
    """The commits of a clone, and the folder in which they are built."""

    clone: Path = ROOT
    cache: Path = CACHE

    def version(self, word: str, name: str = "", *, postgres: bool = False) -> Version:
        """Return the version of a commit, built; `name`: instead of its own. Raises NoVersion."""
        commit = self._commit(word)
        with self._locked():
            source = self._written(commit)
            _build(source, POSTGRES_TARGET if postgres else SERVER_TARGET)
        short = commit[:10]
        return Version(name or short, short, source, source / ".venv" / "bin" / "python")

    def _commit(self, word: str) -> str:
        """Return the full name of a commit. Raises NoVersion."""
        revision = ("--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
        done = self._git("rev-parse", *revision)
        if done.returncode == 0:
            return done.stdout.decode().strip()
        if self._git("rev-parse", "--git-dir").returncode:
            raise NoVersion(
                f"{self.clone} is no clone, so commit {word} is not at hand: clone Moorage with "
                "its history, or name the folder of a checkout"
            )
        if self._git("rev-parse", "--is-shallow-repository").stdout.strip() == b"true":
            raise NoVersion(
                f"commit {word} is not in the history of this shallow clone: "
                "`git fetch --unshallow` gets the rest"
            )
        raise NoVersion(f"{word} is no checkout of Moorage (no src/moorage), and no commit here")

    def _git(self, *words: str) -> "subprocess.CompletedProcess[bytes]":
        command = ["git", "-C", str(self.clone), *words]
        try:
            return subprocess.run(command, capture_output=True, check=False)
        except OSError as error:
            raise NoVersion(f"git cannot be started: {error}") from None

    def _written(self, commit: str) -> Path:
        """Write the files of a commit to the cache, if they are not there; return the folder."""
        folder = self.cache / commit
        if not (folder / COMPLETE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            archive = self._git("archive", "--format=tar", commit)
            if archive.returncode:
                raise NoVersion(f"git archive {commit}: {archive.stderr.decode().strip()}")
            with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
                files.extractall(folder, filter="data")
            (folder / COMPLETE).touch()
        return folder

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Exclude other processes from the cache."""
        self.cache.mkdir(exist_ok=True)
        with (self.cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _build(source: Path, target: str) -> None:
    """Let a version build its environment with this Python, as its own Makefile says."""
    known = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MAKE", "MFLAGS", "MOORAGE_")) and name not in ("ARGS", "VENV")
    }
    environment = {**known, "PYTHON": getattr(sys, "_base_executable", sys.executable)}
    done = subprocess.run(
        ["make", "--no-print-directory", "-C", source, target],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NoVersion(f"{source} does not build: {(done.stdout + done.stderr)[-2_000:]}")
