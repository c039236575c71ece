"""Fresh environments into which tests install Moorage, and what they install it from."""

import re
import subprocess
import sys
import venv
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from moorage import __version__
from tests.client.single import BARE, ROOT

SOURCES = ("checkout", "sdist", "wheel")
WHEEL = f"moorage-{__version__}-py3-none-any.whl"
SDIST = f"moorage-{__version__}.tar.gz"

_BUILD = "from flit_core import buildapi as b; import sys; b.build_{}(sys.argv[1])"
_folders: list[TemporaryDirectory[str]] = []


def build(kind: str, project: Path, folder: Path) -> None:
    """Build the `sdist` or the `wheel` of a folder that has a pyproject.toml, as pip does."""
    subprocess.run(
        [sys.executable, "-c", _BUILD.format(kind), str(folder)],
        cwd=project,
        env={**BARE, "SOURCE_DATE_EPOCH": "315532800"},
        check=True,
    )


@cache
def built() -> Path:
    """Return a folder with the wheel and the sdist; it is deleted when the tests end."""
    folder = _temporary("dist")
    for kind in ("sdist", "wheel"):
        build(kind, ROOT, folder)
    return folder


def source(kind: str) -> Path:
    """Return what is given to pip: the checkout, the sdist or the wheel."""
    return {"checkout": ROOT, "sdist": built() / SDIST, "wheel": built() / WHEEL}[kind]


@cache
def linked(lock: str) -> Path:
    """Return a folder with links to the packages of a lock file that are installed here.

    With this folder on its path, an environment has them without an index.
    """
    folder = _temporary("packages")
    for name in re.findall(r"(?m)^([\w.-]+)==", (ROOT / lock).read_text()):
        try:
            files = metadata.distribution(name).files or []
        except metadata.PackageNotFoundError:
            continue  # it is for other Pythons
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            path = Path(str(metadata.distribution(name).locate_file(top)))
            if not (folder / top).exists():
                (folder / top).symlink_to(path)
    return folder


@cache
def pip() -> list[str]:
    """Return the command of a pip, of this environment or of the Python that it was made from."""
    for python in (sys.executable, str(Path(sys.base_prefix) / "bin/python3")):
        command = [python, "-m", "pip"]
        if (
            subprocess.run([*command, "--version"], capture_output=True, check=False).returncode
            == 0
        ):
            return command
    raise AssertionError(f"there is no pip for {sys.executable}, and none for its base")


class Environment:
    """A virtual environment with nothing but what a test installs."""

    def __init__(self, folder: Path, lock: str | None = None) -> None:
        """Create it; with `lock`, the packages of that file are there."""
        venv.create(folder, with_pip=False)
        self.folder = folder
        self.python = folder / "bin/python"
        self.moorage = folder / "bin/moorage"
        if lock is not None:
            (packages,) = folder.glob("lib/python*/site-packages")
            (packages / "linked.pth").write_text(f"{linked(lock)}\n")

    def install(self, *what: str) -> None:
        """Let pip install something, without an index and without an isolated build."""
        words = ["--quiet", "--no-index", "--no-build-isolation", "--no-compile", *what]
        self.pip("install", *words)

    def pip(self, *words: str) -> None:
        """Run pip for this environment."""
        done = subprocess.run(
            [*pip(), "--python", str(self.python), "--disable-pip-version-check", *words],
            env={**BARE, "PYTHONPATH": str(_flit_core())},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run its Python, isolated from everything else."""
        return finished([str(self.python), *words], **variables)

    def typed(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run its command `moorage`."""
        return finished([str(self.moorage), *words], **variables)


def finished(command: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command outside of the checkout, without variables of ours, until it ends."""
    return subprocess.run(
        command,
        env={**BARE, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )


@cache
def _flit_core() -> Path:
    """Return a folder with nothing but what builds Moorage."""
    folder = _temporary("build")
    (folder / "flit_core").symlink_to(
        str(metadata.distribution("flit_core").locate_file("flit_core"))
    )
    return folder


def _temporary(name: str) -> Path:
    folder: TemporaryDirectory[str] = TemporaryDirectory(prefix=f"moorage-{name}-")
    _folders.append(folder)
    return Path(folder.name)
