"""The images, built once, and the command `docker` on a machine of its own.

BASE is the archive of a minimal Debian, CLIENT the folder of the stock client's programs. All of
it needs root.
"""

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage import __version__
from tests.containers.building import Builder, Image
from tests.containers.docker import PLANTED, ROOT, TARGETS, Docker
from tests.containers.machine import Machine


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder in memory: to remove a hundred thousand files from a disk takes minutes.

    `make containers` runs the tests in a mount namespace, so that it ends with them in any case.
    """
    made = tmp_path_factory.mktemp("images")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6g", "images", made], check=True)
    yield made
    subprocess.run(["umount", made], check=True)


@pytest.fixture(scope="session")
def builder(folder: Path) -> Builder:
    """Return a builder on a base that also has what the public one has."""
    base = folder / "base.tar"
    shutil.copy(os.environ["BASE"], base)
    for name in PLANTED:
        planted = folder / "planted" / name
        planted.parent.mkdir(parents=True, exist_ok=True)
        planted.write_text("raise SystemExit(0)\n")
    with tarfile.open(base, "a") as archive:
        archive.add(folder / "planted/usr/local", "./usr/local")
    return Builder(ROOT, base, folder, {"VERSION": __version__, "REVISION": "0123abc"})


@pytest.fixture(scope="session")
def images(builder: Builder) -> dict[str, Image]:
    """Return the images by target."""
    return {target: builder.build(target) for target in TARGETS}


@pytest.fixture
def docker(images: dict[str, Image], tmp_path: Path) -> Iterator[Docker]:
    """Return the command, on a new machine."""
    with Machine() as machine:
        yield Docker(machine, tmp_path, images)
