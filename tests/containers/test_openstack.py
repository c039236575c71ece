"""The image for kolla, on a base with what kolla's has: its user, its environment, its programs."""

import os
import shutil
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cli.openstack.test_deployment_guide import BOOTSTRAP, UWSGI
from tests.config.files import KOLLA
from tests.containers.building import Builder, Image, launched
from tests.containers.docker import ROOT
from tests.containers.launch import Start
from tests.e2e.support.carried import eventually

PLACEMENT = 42482
"""The number of the user in kolla's images."""

PROGRAMS = ("placement-manage", "placement-status", "uwsgi")
VENV = "/var/lib/kolla/venv/bin"
OWN = "\n[moorage]\ndatabase = sqlite:////var/lib/moorage/moorage.sqlite\n"
READY = "moorage: serving"
LOG = "/var/log/kolla/placement/placement-api-uwsgi.log"


@pytest.fixture(scope="module")
def base(folder: Path) -> Path:
    """Return the archive of a base like kolla's image placement-api."""
    made = folder / "kolla"
    made.mkdir()
    with tarfile.open(os.environ["BASE"]) as archive:
        for name in ("passwd", "group"):
            member = archive.extractfile(f"./etc/{name}")
            assert member is not None
            line = f"placement:x:{PLACEMENT}:"
            line += f"{PLACEMENT}::/var/lib/placement:/usr/sbin/nologin" if name == "passwd" else ""
            (made / name).write_text(f"{member.read().decode()}{line}\n")
    for program in PROGRAMS:
        (made / program).write_text("#!/bin/sh\necho the original; exit 1\n")
        (made / program).chmod(0o755)
    archive_of = folder / "kolla.tar"
    shutil.copy(os.environ["BASE"], archive_of)
    with tarfile.open(archive_of, "a") as archive:
        for name in ("passwd", "group"):
            archive.add(made / name, f"./etc/{name}")
        for program in PROGRAMS:
            archive.add(made / program, f".{VENV}/{program}")
    return archive_of


@pytest.fixture(scope="module")
def image(base: Path, folder: Path) -> Image:
    """Return the image."""
    made = folder / "for-kolla"
    made.mkdir()
    builder = Builder(ROOT, base, made, file="contrib/openstack/Containerfile")
    return builder.build("placement")


@pytest.fixture
def address(image: Image) -> Iterator[str]:
    """Return an address that nobody uses, for which the files in the image are."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        found = f"127.0.0.1:{one.getsockname()[1]}"
    etc, log = image.root / "etc/placement", image.root / LOG.lstrip("/")
    for folder in (etc, log.parent):
        folder.mkdir(parents=True)
        os.chown(folder, PLACEMENT, PLACEMENT)
    files = {
        "placement.conf": KOLLA.replace("{keystone}", "http://127.0.0.1:9") + OWN,
        "placement-api-uwsgi.ini": UWSGI.format(address=found, log=LOG, user="placement"),
    }
    for name, text in files.items():
        (etc / name).write_text(text)
        (etc / name).chmod(0o600)
        os.chown(etc / name, PLACEMENT, PLACEMENT)
    yield found


def started(image: Image, *words: str) -> subprocess.Popen[str]:
    """Start a command as root in the image, as kolla does."""
    start = Start(
        root=str(image.root),
        binds=[],
        read_only=False,
        user=0,
        directory="/",
        environment={**image.environment, "PATH": f"{VENV}:{image.environment['PATH']}"},
        words=list(words),
    )
    return subprocess.Popen(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", *launched(start)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_container(image: Image, address: str) -> None:
    """It is bootstrapped and serves as the user placement, who has the database and the log."""
    bootstrap = started(image, "sh", "-c", BOOTSTRAP)
    said, _ = bootstrap.communicate()
    assert bootstrap.returncode == 0, said
    database = image.root / "var/lib/moorage/moorage.sqlite"
    assert (database.stat().st_uid, database.parent.stat().st_uid) == (PLACEMENT, PLACEMENT)
    server = started(image, "uwsgi", "/etc/placement/placement-api-uwsgi.ini")
    log = image.root / LOG.lstrip("/")
    try:
        eventually(lambda: True if log.exists() and READY in log.read_text() else None)
        with urlopen(f"http://{address}/") as answer:
            assert answer.status == 200
        token = database.with_name(f"{database.name}.token")
        assert {path.stat().st_uid for path in (log, token)} == {PLACEMENT}
    finally:
        server.kill()
        server.communicate()
