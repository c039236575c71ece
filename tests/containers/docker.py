"""The command `docker` as tests type it: that of `engine.py`, on a machine of its own."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from tests.containers.building import Image
from tests.containers.machine import Machine

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("server", "all", "client")
USER = 65532
VOLUME = "/var/lib/moorage"
PLANTED = ("usr/local/bin/pip3", "usr/local/lib/python3.11/site-packages/pip/__init__.py")
"""What the public base image has and Debian keeps elsewhere: planted into the base of the tests."""

ASK = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"


class Docker:
    """The command `docker` on a machine of its own."""

    def __init__(self, machine: Machine, folder: Path, images: dict[str, Image]) -> None:
        self.machine = machine
        (folder / "engine").mkdir()
        (folder / "bin").mkdir()
        known = {name: {**asdict(one), "root": str(one.root)} for name, one in images.items()}
        (folder / "engine/targets.json").write_text(json.dumps(known))
        program = folder / "bin/docker"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.containers.engine "$@"\n')
        program.chmod(0o755)
        path = (folder / "bin", os.environ["CLIENT"], "/usr/bin", "/bin", "/usr/sbin", "/sbin")
        self.environment = {
            "PATH": ":".join(map(str, path)),
            "PYTHONPATH": f"{ROOT}:{ROOT}/src",
            "ENGINE": str(folder / "engine"),
            "HOME": str(folder),
        }
        for target in images:
            self("build", "--file", "Containerfile", "--target", target, "--tag", target, ".")

    def __call__(self, *words: str, code: int = 0) -> str:
        """Run a command that must end with this code; return all that it has printed."""
        done = self.machine.run(["docker", *words], self.environment)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def ask(self, path: str) -> str:
        """Return the answer of a server on the usual port. Raises AssertionError."""
        words = [sys.executable, "-c", ASK, f"http://127.0.0.1:8778{path}"]
        done = self.machine.run(words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
