"""`make run-postgres`: commands in other terminals find its ledger."""

import os
import pwd
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.e2e.support.carried import eventually
from tests.e2e.support.server import MOORAGE, Server
from tests.support.cluster import Cluster

ROOT = Path(__file__).resolve().parents[3]
NAMES = ["MOORAGE_URL", "MOORAGE_DATABASE", "MOORAGE_TOKEN"]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that PostgreSQL's user can reach, with a path short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="moorage-try-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_other_terminals_find_the_ledger(place: Path, tmp_path: Path) -> None:
    """Three lines, pasted into another terminal, are enough for any command in any folder."""
    inherited = {name: one for name, one in os.environ.items() if name not in NAMES}
    inherited["XDG_STATE_HOME"] = str(tmp_path)
    beside = [sys.executable, "-m", "tests.support.cluster", str(place / "pg")]
    (tmp_path / "empty").mkdir()
    with Server([*beside, *MOORAGE, "serve", "--listen", "127.0.0.1:0"], inherited, ROOT) as server:

        def exports() -> list[str] | None:
            found = [line for line in server.said if line.startswith("export ")]
            return found if len(found) == len(NAMES) else None

        lines = eventually(exports)
        assert [line.split("=")[0] for line in lines] == [f"export {name}" for name in NAMES]
        said = [
            "pool create demo --limit 2",
            "run --pool demo -- echo started",
            "token list",
            "db check",
        ]
        script = "".join(lines) + "".join(f"{sys.executable} -m moorage {one}\n" for one in said)
        terminal = subprocess.run(
            ["sh", "-e", "-c", script],
            cwd=tmp_path / "empty",
            env=inherited,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert terminal.returncode == 0, terminal.stderr
        assert terminal.stderr.endswith("0 differences\n")
        made, started, _, admin = terminal.stdout.splitlines()
        assert (made, started) == ("created demo: limit 2, not paced", "started")
        assert "\tadmin\t" in admin
        assert list((tmp_path / "empty").iterdir()) == []


def test_only_its_owner_reaches_it(place: Path) -> None:
    """Folder and socket are closed to other users, and PostgreSQL authenticates them."""
    with Cluster(place / "pg") as cluster:
        assert stat.S_IMODE(cluster.folder.stat().st_mode) == 0o700
        (socket,) = cluster.folder.glob(".s.PGSQL.*[0-9]")
        assert stat.S_IMODE(socket.stat().st_mode) == 0o700
        methods = {
            line.split()[3] for line in (cluster.data / "pg_hba.conf").read_text().splitlines()
        }
        assert methods == {"peer"}
        assert selected(cluster) == "(1,)"
        if os.geteuid() == 0:
            assert "Permission denied" in selected_by("daemon", cluster)
            cluster.folder.chmod(0o755)
            socket.chmod(0o777)
            assert "Peer authentication failed" in selected_by("daemon", cluster)


def test_an_older_cluster_is_closed(place: Path) -> None:
    """A cluster created while it was open to all users is closed at its next start."""
    with Cluster(place / "pg") as cluster:
        pass
    (cluster.data / "pg_hba.conf").write_text("local all all trust\n")
    cluster.folder.chmod(0o755)
    with Cluster(place / "pg") as again:
        assert "trust" not in (again.data / "pg_hba.conf").read_text()
        assert stat.S_IMODE(again.folder.stat().st_mode) == 0o700
        assert selected(again) == "(1,)"


def selected(cluster: Cluster) -> str:
    """Ask the cluster something; return the answer, or the refusal."""
    try:
        with psycopg.connect(cluster.url("postgres")) as connection:
            return str(connection.execute("SELECT 1").fetchone())
    except psycopg.OperationalError as refused:
        return str(refused)


def selected_by(user: str, cluster: Cluster) -> str:
    """Run it as another user, who may not read our files, in a fork of this process."""
    told, tell = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads, which the copy does not need
        copy = os.fork()
    if not copy:
        try:
            os.setuid(pwd.getpwnam(user).pw_uid)
            os.write(tell, selected(cluster).encode())
        finally:
            os._exit(0)
    os.close(tell)
    os.waitpid(copy, 0)
    with open(told, encoding="utf-8") as said:
        return said.read()
