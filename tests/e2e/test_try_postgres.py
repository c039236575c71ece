"""`make run-postgres`: what it runs tells other terminals how to find its ledger."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.e2e.carried import eventually
from tests.e2e.server import MOORAGE, Server

ROOT = Path(__file__).resolve().parents[2]
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
    beside = [sys.executable, "-m", "tests.cluster", str(place / "pg")]
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
        assert (made, started) == ("made demo: limit 2, not paced", "started")
        assert "\tadmin\t" in admin
        assert list((tmp_path / "empty").iterdir()) == []


def test_only_its_owner_reaches_it(place: Path) -> None:
    """Neither the folder nor the socket lets another user in, and PostgreSQL asks who it is."""
    with Cluster(place / "pg") as cluster:
        assert stat.S_IMODE(cluster.folder.stat().st_mode) == 0o700
        (socket,) = cluster.folder.glob(".s.PGSQL.*[0-9]")
        assert stat.S_IMODE(socket.stat().st_mode) == 0o700
        methods = {
            line.split()[3] for line in (cluster.data / "pg_hba.conf").read_text().splitlines()
        }
        assert methods == {"peer"}
        assert selected(cluster).stdout == "1\n"
        if os.geteuid() == 0:
            assert "Permission denied" in selected(cluster, "daemon").stderr
            cluster.folder.chmod(0o755)
            socket.chmod(0o777)
            refused = selected(cluster, "daemon")
            assert "Peer authentication failed" in refused.stderr


def test_an_older_cluster_is_closed(place: Path) -> None:
    """One that was made when everybody was let in is closed at its next start."""
    with Cluster(place / "pg") as cluster:
        pass
    (cluster.data / "pg_hba.conf").write_text("local all all trust\n")
    cluster.folder.chmod(0o755)
    with Cluster(place / "pg") as again:
        assert "trust" not in (again.data / "pg_hba.conf").read_text()
        assert stat.S_IMODE(again.folder.stat().st_mode) == 0o700
        assert selected(again).stdout == "1\n"


def selected(cluster: Cluster, user: str | None = None) -> subprocess.CompletedProcess[str]:
    """Ask the cluster something, as another user if one is named."""
    script = (
        "import psycopg, sys; print(psycopg.connect(sys.argv[1]).execute('SELECT 1').fetchone()[0])"
    )
    return subprocess.run(
        [sys.executable, "-c", script, cluster.url("postgres")],
        capture_output=True,
        text=True,
        check=False,
        user=user,
    )
