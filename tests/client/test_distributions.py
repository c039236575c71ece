"""The distribution: what it contains, and what it can do without its extras."""

import ast
import hashlib
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email import message_from_string
from importlib import metadata
from pathlib import Path

import pytest

from moorage import __version__, extras
from moorage.client import Client
from moorage.wire.admission import PoolWanted
from tests.client.run.test_file import OLDEST, newer_than_oldest, pythons, version_of
from tests.client.single import BARE, ROOT
from tests.e2e.support.server import serve
from tests.support.installing import SDIST, SOURCES, WHEEL, Environment, build, built, source

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
WITHOUT_EXTRAS = (
    *("__init__.py", "__main__.py", "extras.py", "starting.py", "cli/names.py"),
    *("client/", "systemd/", "wire/"),
)
"""What runs on the oldest Python, below `moorage/`."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment with the wheel alone."""
    made = Environment(tmp_path_factory.mktemp("alone"))
    made.install(str(source("wheel")))
    return made


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return the variables for a server that has a pool."""
    database = tmp_path_factory.mktemp("served") / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        token = Path(f"{database}.token").read_text().strip()
        Client(server.url, token).admission.pool_put("both", PoolWanted(limit=1))
        yield {"MOORAGE_URL": server.url, "MOORAGE_TOKEN": token}


def test_it_has_every_file() -> None:
    """The wheel has all files of the package, and no others."""
    sources = ROOT / "src"
    with zipfile.ZipFile(source("wheel")) as archive:
        inside = {one for one in archive.namelist() if ".dist-info/" not in one}
    there = (path for path in sources.rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert inside == {str(path.relative_to(sources)) for path in there}
    assert {Path(name).suffix for name in inside} >= {".html", ".py", ".sh", ".sql", ".typed"}


def test_the_sdist_gives_the_same_wheel(tmp_path: Path) -> None:
    """A wheel that is built from the source distribution has the same bytes."""
    with tarfile.open(source("sdist")) as archive:
        archive.extractall(tmp_path, filter="data")
    build("wheel", tmp_path / SDIST.removesuffix(".tar.gz"), tmp_path)
    one, other = (hashlib.sha256((at / WHEEL).read_bytes()) for at in (built(), tmp_path))
    assert one.hexdigest() == other.hexdigest()


def test_the_extras() -> None:
    """Without an extra nothing is required; each has the server, and asks for no old Python.

    The modules that are looked for before a command of the server are those of the extra.
    """
    with zipfile.ZipFile(source("wheel")) as archive:
        text = archive.read(f"moorage-{__version__}.dist-info/METADATA").decode()
    about = message_from_string(text)
    assert about["Requires-Python"] == f">={'.'.join(map(str, OLDEST))}"
    required = about.get_all("Requires-Dist") or []
    names = {
        *("server", "postgres", "keystone", "ironic", "nova", "kubernetes", "placement", "all")
    }
    assert set(about.get_all("Provides-Extra") or []) == names
    assert all("extra ==" in one for one in required)
    oldest = ".".join(map(str, extras.OLDEST))
    packages = [one for one in required if not one.startswith("moorage")]
    assert len(packages) > len(extras.SERVER)
    assert all(f"python_version >= '{oldest}'" in one.replace('"', "'") for one in packages), (
        packages
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    optional = project["project"]["optional-dependencies"]
    for name in names - {"server", "all", "placement"}:
        assert "moorage[server]" in optional[name]
    assert "moorage[postgres]" in optional["placement"]
    assert optional["all"] == ["moorage[server,postgres,keystone,ironic,nova,kubernetes,placement]"]
    assert project["dependency-groups"]["build"] == project["build-system"]["requires"]
    of_server = {one.split(">")[0].lower().replace("_", "-") for one in optional["server"]}
    modules: set[str] = set()
    for module, distributions in metadata.packages_distributions().items():
        if of_server & {one.lower().replace("_", "-") for one in distributions}:
            modules.add(module)
    assert set(extras.SERVER) <= modules
    assert len(extras.SERVER) == len(of_server)


def test_the_oldest_python_can_run_it(tmp_path: Path) -> None:
    """What needs no extra uses only the language and library of the oldest Python; planted
    violations are found.
    """
    with zipfile.ZipFile(source("wheel")) as archive:
        names = [name for name in archive.namelist() if name.endswith(".py")]
        parts = tuple(f"moorage/{part}" for part in WITHOUT_EXTRAS)
        archive.extractall(tmp_path, [name for name in names if name.startswith(parts)])
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
    """Every Python of this machine can use the client, and says what other commands need."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        variables = {**BARE, **where, "PYTHONPATH": str(source("wheel"))}
        command = [python, "-s", *words]
        return subprocess.run(
            command, env=variables, capture_output=True, text=True, check=False, cwd="/"
        )

    done = run("-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    command = run("-m", "moorage", "run", "--pool", "both", "--", "echo", "x")
    assert (command.returncode, command.stdout) == (0, "x\n"), command.stderr
    version = version_of(python)
    assert version is not None
    if version < extras.OLDEST:
        refused = run("-m", "moorage", "pool", "list")
        assert (refused.returncode, refused.stdout) == (2, "")
        needed = f"moorage: moorage pool needs Python 3.11 or later, this is 3.{version[1]}."
        assert refused.stderr.startswith(needed)
        assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize("kind", SOURCES)
def test_installed_without_extras(kind: str, tmp_path: Path) -> None:
    """From a checkout, an sdist or a wheel: one package, the client, and a line for other commands.

    The checkout is not written to.
    """
    before = _state(ROOT)
    alone = Environment(tmp_path / "alone")
    alone.install(str(source(kind)))
    listed = "from importlib.metadata import distributions as d; print(*(x.name for x in d()))"
    assert alone.run("-c", listed).stdout == "moorage\n"
    for words in (["version"], ["--version"]):
        assert alone.typed(*words).stdout == f"moorage {__version__}\n"
        assert alone.run("-m", "moorage", *words).stdout == f"moorage {__version__}\n"
    run = alone.typed(
        "run", "--unlimited-without-server", "-p", "p", "--", "sh", "-c", "echo x; exit 7"
    )
    assert (run.returncode, run.stdout) == (7, "x\n"), run.stderr
    assert "dry run" in run.stderr
    _refused(alone, "serve", "there is no apsw", "server")
    _refused(alone, "lease list", "there is no apsw", "server")
    as_json = alone.typed("pool", "list", "--json")
    assert as_json.returncode == 2
    assert as_json.stderr.startswith('{"error": {"code": "usage", "message": "moorage pool needs')
    assert "Every other command needs the extra server" in " ".join(
        alone.typed("--help").stdout.split()
    )
    assert _state(ROOT) == before


def test_installed_with_the_server(tmp_path: Path) -> None:
    """The extra `server` is enough to serve and to operate; what another extra has says so."""
    made = Environment(tmp_path / "server", "requirements.lock")
    made.install(f"{source('wheel')}[server]")
    with serve(tmp_path / "moorage.sqlite", moorage=(str(made.moorage),)) as server:
        token = (tmp_path / "moorage.sqlite.token").read_text().strip()
        where = {"MOORAGE_URL": server.url, "MOORAGE_TOKEN": token}
        created = made.typed("pool", "create", "demo", "--limit", "1", **where)
        assert created.returncode == 0, created.stderr
        run = made.typed("run", "--pool", "demo", "--", "echo", "x", **where)
        assert (run.returncode, run.stdout) == (0, "x\n"), run.stderr
        token_file = tmp_path / "moorage.sqlite.token"
        nodes = tmp_path / "nodes"
        nodes.write_text("node-1\n")
        reach = f"--url {server.url} --pool demo"
        for words in (
            f"gate --ironic http://127.0.0.1:1 --token-file {token_file} {reach}",
            "gate check --gate http://127.0.0.1:1 --ironic http://127.0.0.1:1",
            f"ironic govern --ironic http://127.0.0.1:1 {reach}",
            f"ironic report --group g --ironic http://127.0.0.1:1 --url {server.url}",
            f"ironic rollout --nodes {nodes} --ironic http://127.0.0.1:1 {reach}",
        ):
            _refused(made, words, "No module named 'aiohttp'", "ironic", **where)
        for words in (
            f"metal3 govern {reach} --kubeconfig /none",
            "metal3 hold metal3 --kubeconfig /none",
            "metal3 resume metal3 --kubeconfig /none",
            "metal3 uninstall --kubeconfig /none",
            "metal3 webhook --listen 127.0.0.1:0 --tls-cert /none --tls-key /none",
        ):
            _refused(made, words, "No module named", "kubernetes", **where)
    _refused(made, "db check --database postgresql:///x", "No module named 'psycopg'", "postgres")
    words = "db check --database postgresql:///x"
    said = made.typed(*words.split(), MOORAGE_IMAGE="yes").stderr
    assert said.endswith("psycopg'): use the image `all`, which has every extra\n"), said
    settings = "--auth keystone --keystone-url http://127.0.0.1:1"
    keystone = f"serve --database sqlite:///{tmp_path}/new.sqlite {settings}"
    why = "No module named 'keystoneauth1'"
    _refused(made, keystone, why, "keystone", MOORAGE_KEYSTONE_PASSWORD="x")
    assert not (tmp_path / "new.sqlite").exists(), "refused before anything is made"


def _refused(made: Environment, words: str, why: str, extra: str, **variables: str) -> None:
    """Check that a command says on one line which extra to install."""
    done = made.typed(*words.split(), **variables)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), (words, done)
    assert f" needs the extra {extra} ({why}" in done.stderr, (words, done.stderr)
    assert done.stderr.endswith(f": pip install 'moorage[{extra}]'\n")


def _state(folder: Path) -> set[str]:
    """Return what git sees in a checkout, ignored files included; empty if it is no repository."""
    done = subprocess.run(
        ["git", "status", "--porcelain", "--ignored"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return set(done.stdout.splitlines())
