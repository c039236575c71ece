"""The distributions moorage and moorage-client: what they contain, and that they live together."""

import ast
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from moorage import __version__
from moorage.client import Client
from moorage.wire.admission import PoolWanted
from tests.client.run.test_file import OLDEST, newer_than_oldest, pythons
from tests.client.single import BARE, ROOT
from tests.e2e.support.server import serve

_folders: list[TemporaryDirectory[str]] = []

PROGRAM = """
import moorage.client
from moorage.client import Client, RefusedError, UnreachableError
client = Client()
print([pool.name for pool in client.admission.pools()], client.admission.pool("both").pacing)
with client.lease("both", hold="20m", outcome=True) as lease:
    assert client.admission.verify("both", lease.token).current
    lease.check()
watch = iter(client.ledger.watch("1.0"))
print(sorted({next(watch).kind for _ in range(4)} & {"pool", "lease"}))
"""
OLD = "import sys, types, dataclasses, typing; sys.version_info = (3, 9, 0, 'final', 0)\n"
"""Makes the modules that are imported next behave as on the oldest Python."""


@cache
def built() -> Path:
    """Return the folder with both distributions; it is deleted when the tests end."""
    folder: TemporaryDirectory[str] = TemporaryDirectory(prefix="moorage-dist-")
    _folders.append(folder)
    subprocess.run([sys.executable, str(ROOT / "scripts/distributions"), folder.name], check=True)
    return Path(folder.name)


def wheel(name: str) -> Path:
    """Return the wheel of a distribution."""
    (path,) = built().glob(f"{name}-{__version__}-py3-none-any.whl")
    return path


def modules(name: str) -> set[str]:
    """Return the files that a wheel installs, without its metadata."""
    with zipfile.ZipFile(wheel(name)) as archive:
        return {one for one in archive.namelist() if ".dist-info/" not in one}


class Environment:
    """A virtual environment with nothing but what a test installs."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False)
        self.python = folder / "bin/python"

    def pip(self, *words: str) -> None:
        """Run pip for it, without an index."""
        command = [sys.executable, "-m", "pip", "--python", str(self.python), *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def install(self, name: str) -> None:
        """Install a wheel."""
        self.pip("install", "--quiet", "--no-index", "--no-deps", str(wheel(name)))

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run its Python, isolated from everything else."""
        return subprocess.run(
            [str(self.python), *words],
            env={**BARE, **variables},
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
        )


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment with moorage-client alone."""
    made = Environment(tmp_path_factory.mktemp("alone"))
    made.install("moorage_client")
    return made


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return the variables for a server that has a pool."""
    database = tmp_path_factory.mktemp("served") / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        token = Path(f"{database}.token").read_text().strip()
        Client(server.url, token).admission.pool_put("both", PoolWanted(limit=1))
        yield {"MOORAGE_URL": server.url, "MOORAGE_TOKEN": token}


def test_no_file_is_in_both() -> None:
    """Together the wheels have every file of the package, each once; the server needs the client
    of its own version, and the client needs nothing.
    """
    client, server = modules("moorage_client"), modules("moorage")
    assert not client & server
    sources = ROOT / "src"
    kinds = {".css", ".html", ".js", ".py", ".sh", ".sql", ".svg", ".yaml", ".typed"}
    assert client | server == {
        str(path.relative_to(sources))
        for path in sources.rglob("*")
        if path.suffix in kinds or (path.is_file() and path.parent.name == "vendor")
    }
    assert {one.split("/")[1] for one in client if one.count("/") > 1} == {"client", "wire"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"moorage-client=={__version__}" in project["dependencies"]
    alone = tomllib.loads((ROOT / "packaging/client/pyproject.toml").read_text())["project"]
    assert alone["dependencies"] == []
    assert alone["requires-python"] == f">={'.'.join(map(str, OLDEST))}"


def test_the_source_distributions() -> None:
    """Each wheel was built from a source distribution, which is there, too."""
    names = {path.name for path in built().iterdir()}
    assert {f"moorage-{__version__}.tar.gz", f"moorage_client-{__version__}.tar.gz"} < names
    assert len(names) == 4


def test_the_oldest_python_can_run_the_client(tmp_path: Path) -> None:
    """The client uses only the language and library of the oldest Python; planted violations are
    found.
    """
    with zipfile.ZipFile(wheel("moorage_client")) as archive:
        archive.extractall(tmp_path)
    newer = tmp_path / "moorage/wire/dataclass.py"  # has a branch for each
    assert "sys.version_info >= (3, 10)" in newer.read_text()
    newer.unlink()
    for path in tmp_path.rglob("*.py"):
        ast.parse(path.read_text(), feature_version=OLDEST)
    assert newer_than_oldest(tmp_path) == ""
    planted = tmp_path / "moorage/wire/planted.py"
    planted.write_text("from dataclasses import dataclass\n@dataclass(slots=True)\nclass A: ...\n")
    assert "planted.py" in newer_than_oldest(tmp_path)


def test_the_client_alone(environment: Environment, where: dict[str, str]) -> None:
    """In an environment with nothing else, a program holds a lease, and the command line works."""
    done = environment.run("-c", PROGRAM, **where)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("['both'] None\n")
    assert environment.run("-c", "import moorage.core").returncode == 1
    command = environment.run("-m", "moorage", "run", "--pool", "both", "--", "echo", "x", **where)
    assert (command.returncode, command.stdout) == (0, "x\n"), command.stderr


def test_the_client_as_on_the_oldest_python(
    environment: Environment, where: dict[str, str]
) -> None:
    """The types without slots, and hints with `|` that cannot be evaluated, give the same values.

    The version is pretended; where there is an old Python, the next test uses it.
    """
    done = environment.run("-c", OLD + PROGRAM, **where)
    assert done.returncode == 0, done.stderr
    assert done.stdout == environment.run("-c", PROGRAM, **where).stdout
    wrong = OLD + "from moorage.wire.admission import NeedWanted as N\n"
    for call, missing in (("N()", "pool"), ("N(pool='a', pol=1)", "pol"), ("N('a')", "argument")):
        refused = environment.run("-c", wrong + call)
        assert "TypeError" in refused.stderr
        assert missing in refused.stderr
    kept = "n = N(pool='a'); print(n == N(pool='a', units=1), hasattr(n, '__slots__'), n)"
    assert environment.run("-c", wrong + kept).stdout == (
        "True False NeedWanted(pool='a', units=1, labels={})\n"
    )


@pytest.mark.parametrize("python", pythons())
def test_every_python_here_runs_it(python: str, where: dict[str, str]) -> None:
    """Every Python of this machine can use the client."""
    done = subprocess.run(
        [python, "-c", PROGRAM],
        env={**BARE, **where, "PYTHONPATH": str(wheel("moorage_client"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_both_in_one_environment(tmp_path: Path) -> None:
    """Either order of installing works, and removing the server leaves the client intact."""
    both = Environment(tmp_path / "both")
    for order in (("moorage", "moorage_client"), ("moorage_client", "moorage")):
        for name in order:
            both.install(name)
        rules = "import moorage.core.errors, moorage.client; moorage.client.Holding"
        assert both.run("-c", rules).returncode == 0
        both.pip("uninstall", "--quiet", "--yes", "moorage")
        assert both.run("-c", "import moorage.client; moorage.client.Client").returncode == 0
        assert both.run("-c", rules).returncode == 1
        both.pip("uninstall", "--quiet", "--yes", "moorage-client")
        assert both.run("-c", "import moorage").returncode == 1
    assert not [*Path(tmp_path).rglob("moorage/**/*.py")]
