"""Moorage is installed as users do, with pip, pipx and uv, each package of an extra from an index.

`make installations` runs these: they need what pip needs. Each installation starts from a copy of
the checkout, its sdist or its wheel, in an environment of its own.
"""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from moorage import __version__, extras
from tests.client.run.test_file import oldest_python
from tests.client.single import ROOT
from tests.e2e.support.server import serve
from tests.support.installing import SDIST, SOURCES, WHEEL, build, finished

INSTALLERS = Path(os.environ.get("INSTALLERS", ROOT / ".venv-installers/bin"))
COPIED = ("LICENSE", "README.md", "pyproject.toml", "src")
"""The parts of a checkout from which Moorage is built."""
SECONDS = 600.0


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a checkout, the sdist and the wheel."""
    folder = tmp_path_factory.mktemp("sources")
    checkout = folder / "checkout"
    checkout.mkdir()
    for part in COPIED:
        source = ROOT / part
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, checkout / part, ignore=ignored)
        else:
            shutil.copy(source, checkout / part)
    for kind in ("sdist", "wheel"):
        build(kind, checkout, folder)
    return {"checkout": checkout, "sdist": folder / SDIST, "wheel": folder / WHEEL}


def run(*command: str | Path, at: Path | None = None, **variables: str) -> str:
    """Run a command that must succeed, with the settings of pip and uv of this machine."""
    done = subprocess.run(
        [*command],
        cwd=at,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def with_pip(what: str, at: Path, folder: Path) -> Path:
    """Install with the pip of a new environment, typed `at` a folder; return where commands are."""
    venv.create(folder / "pip", with_pip=True)
    run(folder / "pip/bin/python", "-m", "pip", "install", "--quiet", what, at=at)
    return folder / "pip/bin"


def with_pipx(what: str, at: Path, folder: Path) -> Path:
    """Install with pipx."""
    names = ("PIPX_HOME", "PIPX_BIN_DIR", "PIPX_MAN_DIR", "PIPX_COMPLETION_DIR")
    places = {name: str(folder / name.lower()) for name in names}
    places["PIPX_DEFAULT_PYTHON"] = sys.executable
    run(INSTALLERS / "pipx", "install", what, at=at, **places)
    return folder / "pipx_bin_dir"


def with_uv(what: str, at: Path, folder: Path) -> Path:
    """Install with uv."""
    places = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    words = ("tool", "install", "--quiet", "--python", sys.executable, what)
    run(INSTALLERS / "uv", *words, at=at, **places)
    return folder / "bin"


def typed(sources: dict[str, Path], kind: str, extra: str = "") -> tuple[str, Path]:
    """Return what is typed to install a source with an extra, such as `[server]`, and where."""
    source = sources[kind]
    return ("." if kind == "checkout" else f"./{source.name}") + extra, (
        source if kind == "checkout" else source.parent
    )


def python_of(commands: Path) -> str:
    """Return the Python that runs the installed command."""
    first = (commands / "moorage").read_text().split("\n", 1)[0]
    return first.removeprefix("#!").removesuffix(" -E").strip()  # pipx isolates it


def check_client(commands: Path) -> None:
    """Check what every installation can do."""
    python = python_of(commands)
    for command in ([str(commands / "moorage")], [python, "-m", "moorage"]):
        assert finished([*command, "--version"]).stdout == f"moorage {__version__}\n"
        ran = finished(
            [
                *command,
                "run",
                "--unlimited-without-server",
                "-p",
                "p",
                "--",
                "sh",
                "-c",
                "echo x; exit 7",
            ]
        )
        assert (ran.returncode, ran.stdout) == (7, "x\n"), ran.stderr
    program = "import moorage.client, pathlib; print(pathlib.Path(moorage.__file__).parent)"
    package = Path(finished([python, "-c", program]).stdout.strip())
    assert (package / "py.typed").exists()
    assert "checkout" not in package.parts


def check_server(commands: Path, folder: Path) -> None:
    """Check that the installation serves, and that its command line asks that server."""
    database = folder / "moorage.sqlite"
    with serve(database, "--no-access-log", moorage=(str(commands / "moorage"),)) as server:
        token = Path(f"{database}.token").read_text().strip()
        where = {"MOORAGE_URL": server.url, "MOORAGE_TOKEN": token}
        for words in ("pool create demo --limit 1", "run --pool demo -- true", "lease list"):
            done = finished([str(commands / "moorage"), *words.split()], **where)
            assert done.returncode == 0, done.stderr


def refused(commands: Path, *words: str) -> str:
    """Return the one line that a command prints because an extra is missing."""
    done = finished([str(commands / "moorage"), *words])
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr


def files_of(folder: Path) -> set[Path]:
    """Return everything below a folder."""
    return {*folder.rglob("*")}


@pytest.mark.parametrize("kind", SOURCES)
def test_pip_without_extras(kind: str, sources: dict[str, Path], tmp_path: Path) -> None:
    """`pip install .`: the client, and a line that says what the server needs.

    What the line says can be typed: the extra is added to what is installed.
    """
    before = files_of(sources["checkout"])
    commands = with_pip(*typed(sources, kind), tmp_path)
    check_client(commands)
    line = refused(commands, "serve")
    assert "moorage serve needs the extra server (" in line
    words = line.rpartition(": ")[2].replace("'", "").split()
    assert words[:2] == ["pip", "install"]
    if kind == "wheel":
        run(commands / "python", "-m", "pip", "install", "--quiet", *words[2:])
        check_server(commands, tmp_path)
    assert files_of(sources["checkout"]) == before


@pytest.mark.parametrize("kind", SOURCES)
def test_pip_with_the_server(kind: str, sources: dict[str, Path], tmp_path: Path) -> None:
    """`pip install '.[server]'`: everything but the other extras."""
    commands = with_pip(*typed(sources, kind, "[server]"), tmp_path)
    check_client(commands)
    check_server(commands, tmp_path)
    line = refused(commands, "db", "check", "--database", "postgresql:///x")
    assert "PostgreSQL needs the extra postgres (" in line


@pytest.mark.parametrize("kind", SOURCES)
def test_pipx_with_the_server(kind: str, sources: dict[str, Path], tmp_path: Path) -> None:
    """`pipx install '.[server]'`: as with pip."""
    commands = with_pipx(*typed(sources, kind, "[server]"), tmp_path)
    check_client(commands)
    check_server(commands, tmp_path)


@pytest.mark.parametrize("kind", SOURCES)
def test_uv_with_everything(kind: str, sources: dict[str, Path], tmp_path: Path) -> None:
    """`uv tool install '.[all]'`: the packages of every extra are there."""
    commands = with_uv(*typed(sources, kind, "[all]"), tmp_path)
    check_client(commands)
    check_server(commands, tmp_path)
    imported = "import aiohttp, keystoneauth1.session, kopf, psycopg; psycopg.pq.version()"
    done = finished([python_of(commands), "-c", imported])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("extra", ["", "[all]"])
def test_the_oldest_python(extra: str, sources: dict[str, Path], tmp_path: Path) -> None:
    """Every extra can be installed for Python 3.9: it adds nothing, and its commands say why."""
    uv, python = INSTALLERS / "uv", tmp_path / "old/bin/python"
    run(uv, "venv", "--quiet", "--python", oldest_python(), tmp_path / "old")
    what, at = typed(sources, "checkout", extra)
    run(uv, "pip", "install", "--quiet", "--python", python, what, at=at)
    check_client(python.parent)
    line = refused(python.parent, "serve")
    assert line.startswith("moorage: moorage serve needs Python 3.11 or later, this is 3.9.")
    assert run(uv, "pip", "list", "--quiet", "--python", python).count("\n") == 3  # with a head


def test_the_pinned_packages(sources: dict[str, Path], tmp_path: Path) -> None:
    """As the guide to operating tells: the lock file first, then Moorage without anything else.

    Hashes are left out here, because an index may have packages of its own making.
    """
    lock = tmp_path / "requirements.txt"
    pins = (ROOT / "requirements-server.lock").read_text()
    found = re.findall(r"(?m)^[\w.-]+==.*?(?= \\$)", pins)
    assert len(found) > len(extras.SERVER)
    lock.write_text("\n".join(found))
    venv.create(tmp_path / "pip", with_pip=True)
    pip = (tmp_path / "pip/bin/python", "-m", "pip", "install", "--quiet")
    run(*pip, "--requirement", lock)
    words = ("--no-index", "--no-deps", "--no-build-isolation", ".")
    run(*pip, *words, at=sources["checkout"])
    check_client(tmp_path / "pip/bin")
    check_server(tmp_path / "pip/bin", tmp_path)
