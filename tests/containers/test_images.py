"""The images of the Containerfile: what they have, and how they run read-only, as their user."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from moorage import __version__
from tests.containers.building import Builder, Image, NotBuilt
from tests.containers.docker import PLANTED, ROOT, USER, VOLUME, Docker
from tests.e2e.support.carried import eventually
from tests.e2e.support.typed import Step, play, steps_of

PAGE = ROOT / "docs/howto/container.md"
SERVE = (
    *("run", "--detach", "--name", "one", "--read-only"),
    *("--publish", "8778:8778", "--volume", f"v:{VOLUME}"),
)
"""The words for a server named one."""


def inside(image: Image, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the files of an image, as root."""
    return subprocess.run(
        ["chroot", image.root, "env", "-i", f"PATH={image.environment['PATH']}", *words],
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_they_have(builder: Builder, images: dict[str, Image]) -> None:
    """Each has its extra and nothing that installs; all belongs to root but the volume."""
    program = (
        "import importlib.util as u, sys;"
        "print(*(m for m in ('apsw', 'psycopg', 'kopf', 'pip', 'flit_core') if u.find_spec(m)))"
    )
    has = {
        name: inside(one, "/opt/moorage/bin/python", "-c", program) for name, one in images.items()
    }
    assert {name: done.stdout.split() for name, done in has.items()} == {
        "server": ["apsw"],
        "all": ["apsw", "psycopg", "kopf"],
        "client": [],
    }
    for target, image in images.items():
        assert inside(image, "moorage", "--version").stdout == f"moorage {__version__}\n", target
        assert inside(image, "python3", "-m", "pip", "--version").returncode != 0
        assert not any((image.root / name).exists() for name in PLANTED)
        for name in ("source", "tools", "wheels"):
            assert not (image.root / name).exists()
        programs = [inside(image, "which", name).stdout for name in ("gcc", "cc", "pip", "flit")]
        assert programs == ["", "", "", ""]
        assert image.user == USER
        label = "org.opencontainers.image."
        assert image.labels[f"{label}version"] == __version__
        assert image.labels[f"{label}revision"] == "0123abc"
        owned = [path for path in image.root.glob("**/*") if path.lstat().st_uid == USER]
        assert owned == ([] if target == "client" else [image.root / VOLUME.lstrip("/")])
    known = images["server"].environment
    words = ("env", f"MOORAGE_IMAGE={known['MOORAGE_IMAGE']}", "moorage", "db", "check")
    said = inside(images["server"], *words, "--database", "postgresql:///x").stderr
    assert said.endswith(": use the image `all`, which has every extra\n"), "no pip is there"
    # The control: the base has these.
    assert all((builder.build("tools").root / name).exists() for name in PLANTED)


def test_a_wrong_hash_fails(folder: Path) -> None:
    """A package that differs from the lock is refused."""
    project, made = folder / "wrong", folder / "wrong-made"
    project.mkdir()
    made.mkdir()
    lock = (ROOT / "requirements-image.lock").read_text()
    wrong = re.sub(r"sha256:\w{64}", f"sha256:{'0' * 64}", lock)
    for name in ("image", "server"):
        (project / f"requirements-{name}.lock").write_text(wrong)
    for name in ("Containerfile", ".containerignore"):
        (project / name).write_bytes((ROOT / name).read_bytes())
    with pytest.raises(NotBuilt, match="DO NOT MATCH THE HASHES"):
        Builder(project, Path(os.environ["BASE"]), made).build("tools")


def test_the_page(docker: Docker, tmp_path: Path) -> None:
    """Each command of the page, typed in order, prints what the page shows."""
    steps = steps_of(PAGE)
    assert len(steps) > 12
    results = play(steps, tmp_path, docker.environment, enter=docker.machine.enter)
    for step, (said, code) in zip(steps, results, strict=True):
        refused = step.command == "docker run --rm --read-only $IMAGE-server"
        assert code == (2 if refused else 0), (step.command, said)
        shows(step, said)


def shows(step: Step, said: str) -> None:
    """Check that a command has printed each line of the page; `...` stands for anything."""
    for line in step.shown:
        parts = line.split("...")
        found = [one for one in said.splitlines() if all(part in one for part in parts)]
        assert found, (step.command, line, said)


def test_it_serves_read_only_and_keeps_its_data(docker: Docker) -> None:
    """Health, SIGTERM and a new start; nothing but the volume can be written."""
    docker(*SERVE, "server")
    assert docker.ask("/readyz")
    docker("health", "one")
    docker("exec", "one", "moorage", "pool", "create", "kept", "--limit", "2")
    for place in ("/", "/tmp", "/opt/moorage", "/usr/local/lib/python3.11"):
        assert "Read-only" in docker("exec", "one", "touch", f"{place}/x", code=1)
    status = docker("exec", "one", "cat", "/proc/1/status")
    values = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert values["Uid"] == values["Gid"] == "\t".join([str(USER)] * 4)
    assert (values["CapEff"], values["NoNewPrivs"]) == ("0" * 16, "1")
    assert docker("stop", "one") == "one 0\n"
    with pytest.raises(AssertionError):
        docker.ask("/readyz")
    docker("start", "one")
    assert "kept" in docker("exec", "one", "moorage", "pool", "list")
    assert docker("stop", "one") == "one 0\n"
    docker(*SERVE, "all")
    assert "kept" in docker("exec", "one", "moorage", "pool", "list")


def test_health_tells_of_a_server_that_does_not_answer(docker: Docker) -> None:
    """The check follows the settings, and fails if nothing answers there: the control."""
    docker(*SERVE, "--env", "MOORAGE_LISTEN=0.0.0.0:9000", "server")
    said = docker("exec", "one", "env", "MOORAGE_LISTEN=0.0.0.0:9001", "container-health", code=1)
    assert said.startswith("no answer: ")
    docker("health", "one")


def test_the_client_gives_its_unit_back(docker: Docker) -> None:
    """As the first process of a container, `moorage run` passes SIGTERM on and releases."""
    docker(*SERVE, "server")
    docker("exec", "one", "moorage", "pool", "create", "builds", "--limit", "1")
    token = docker("exec", "one", "cat", f"{VOLUME}/moorage.sqlite.token").strip()
    where = ("--env", "MOORAGE_URL=http://127.0.0.1:8778", "--env", f"MOORAGE_TOKEN={token}")
    run = ("--read-only", "--network", "host", *where, "client", "run", "--pool", "builds", "--")
    docker("run", "--detach", "--name", "job", *run, "sh", "-c", "echo begun; exec sleep 1000")
    eventually(lambda: "begun" in docker("logs", "job") or None)
    assert "builds\t1\t1\t" in docker("exec", "one", "moorage", "pool", "list")
    assert docker("stop", "job") == "job 143\n"
    assert "my turn" in docker("run", "--rm", *run, "echo", "my turn")
