"""The image with every extra, on PostgreSQL."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.containers.docker import USER, VOLUME, Docker
from tests.e2e.support.carried import eventually
from tests.support.cluster import Cluster

PASSWORD = "between us"
SOCKET = "/mnt"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Return a cluster with an empty database, whose socket asks everybody for the password."""
    with Cluster() as made:
        made.create("ledger")
        with psycopg.connect(made.url("ledger"), autocommit=True) as connection:
            connection.execute(f"ALTER ROLE moorage PASSWORD '{PASSWORD}'".encode())
        rules = made.data / "pg_hba.conf"
        rules.write_text("local ledger all scram-sha-256\n" + rules.read_text())
        settings = made.data / "postgresql.conf"
        settings.write_text(settings.read_text() + "unix_socket_permissions = 0777\n")
        made.folder.chmod(0o711)
        made.restart()
        yield made


def test_two_containers_share_a_ledger(docker: Docker, cluster: Cluster, tmp_path: Path) -> None:
    """Without a volume, no token is created; with one, it is there, and counts for both."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "password").write_text(f"{PASSWORD}\n")
    os.chown(secrets / "password", USER, USER)
    (secrets / "password").chmod(0o400)
    words = ["run", "--read-only", "--volume", f"{cluster.folder}:{SOCKET}"]
    words += ["--volume", f"{secrets}:/srv"]
    words += ["--env", f"MOORAGE_DATABASE=postgresql://moorage@/ledger?host={SOCKET}"]
    words += ["--env", "MOORAGE_DATABASE_PASSWORD_FILE=/srv/password"]
    said = docker(*words, "all", code=2).splitlines()[-1]
    token = f"{VOLUME}/.local/state/moorage/"
    assert said.startswith(f"moorage: cannot write the administrator's token to {token}")
    assert "Read-only file system" in said and f"the user {USER} can write" in said
    for name, port in (("one", 8778), ("two", 8779)):
        more = ["--env", f"MOORAGE_LISTEN=0.0.0.0:{port}", "--publish", f"{port}:{port}"]
        more += ["--volume", f"{name}:{VOLUME}"]
        docker(*words, *more, "--detach", "--name", name, "all")
    shown = "cat .local/state/moorage/*.token"
    secret = docker("exec", "one", "sh", "-c", shown).strip()
    docker("exec", "two", "sh", "-c", shown, code=1)
    reach = (
        "--network",
        "host",
        "--env",
        "MOORAGE_URL=http://127.0.0.1:8779",
        "--env",
        f"MOORAGE_TOKEN={secret}",
    )
    docker("run", "--rm", *reach, "all", "pool", "create", "builds", "--limit", "1")
    assert "my turn" in docker(
        *("run", "--rm", *reach, "client", "run", "--pool", "builds", "--", "echo", "my turn")
    )
    cluster.stop("immediate")
    eventually(lambda: is_unready(docker) or None)
    docker("health", "one")  # a restart would not bring the database back
    cluster.start()
    assert eventually(lambda: not is_unready(docker) or None)
    for name in ("one", "two"):
        assert docker("stop", name) == f"{name} 0\n"


def is_unready(docker: Docker) -> bool:
    """Return whether the first server tells clients to ask another one."""
    try:
        docker.ask("/readyz")
    except AssertionError as error:
        assert "503" in str(error)
        return True
    return False
