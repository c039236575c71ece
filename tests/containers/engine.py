"""What `docker` does on the pages, for images that `building.py` has built; it runs on a `Machine`.

It knows the commands and options that the pages use; all others fail. A container that publishes a
port shares the network of the machine, so a port is published only as itself. As for an engine, a
new volume gets the owner of the folder that it covers.

The folder $ENGINE has `targets.json`, the built images by the name of their stage; the images by
tag; and for each container what was started, its log, and the exit code.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from tests.containers.building import launched
from tests.containers.launch import Start
from tests.e2e.support.carried import eventually
from tests.support.guard import ended

STOP_SECONDS = 10.0
"""Seconds after which an engine kills the process."""

SUPERVISED = '"$@"; echo $? > "$0.new"; mv "$0.new" "$0"'
"""Runs a container, and writes its exit code into the file that is the shell's name."""


class Engine:
    """The commands."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def build(self, asked: argparse.Namespace) -> int:
        """Tag a target."""
        assert (asked.file, asked.context) == ("Containerfile", ".")
        self._write(image_file(asked.tag), self._read("targets.json")[asked.target])
        return 0

    def push(self, asked: argparse.Namespace) -> int:
        """Fail if there is no such image. There is no registry."""
        self._read(image_file(asked.name))
        return 0

    def run(self, asked: argparse.Namespace) -> int:
        """Start a container; without --detach until it ends."""
        image = self._read(image_file(asked.image))
        binds = [self._volume(one, image) for one in asked.volume]
        environment = {**image["environment"], "HOSTNAME": "container"}
        for one in asked.env:
            name, equals, value = one.partition("=")
            environment[name] = value if equals else os.environ[name]
        for port in asked.publish:
            *_, outside, inside = port.split(":")
            assert outside == inside, port
        assert asked.network in (None, "host")
        shared = bool(asked.network or asked.publish)
        start = Start(
            root=image["root"],
            binds=binds,
            read_only=asked.read_only,
            user=image["user"],
            directory=image["directory"],
            environment=environment,
            words=[*image["entrypoint"], *(asked.words or image["command"])],
        )
        if not asked.detach:
            alone = [] if shared else ["unshare", "--net"]
            return subprocess.run([*alone, *unshared(start)], check=False).returncode
        assert shared, "nobody could reach it"
        self._write(f"{asked.name}.container", {"image": image, "start": start})
        return self.start(asked)

    def start(self, asked: argparse.Namespace) -> int:
        """Start a container in the background, and wait until it is healthy, unlike an engine."""
        known = self._read(f"{asked.name}.container")
        code = self._folder / f"{asked.name}.code"
        code.unlink(missing_ok=True)
        with (self._folder / f"{asked.name}.log").open("a") as log:
            below = subprocess.Popen(
                ["sh", "-c", SUPERVISED, str(code), *unshared(known["start"])],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            ).pid
        # The shell's child is `unshare`, whose child is the first process of the container.
        for _ in range(2):
            below = int(eventually(partial(children, below)))
        self._write(f"{asked.name}.container", {**known, "pid": below})
        if known["image"]["health"]:
            eventually(lambda: code.exists() or self.health(asked) == 0 or None)
        return 1 if code.exists() else 0

    def health(self, asked: argparse.Namespace) -> int:
        """Run the health check in a container."""
        words = self._inside(asked, *self._read(f"{asked.name}.container")["image"]["health"])
        return subprocess.run(words, capture_output=True, check=False).returncode

    def exec(self, asked: argparse.Namespace) -> int:
        """Run a command in a container."""
        return subprocess.run(self._inside(asked, *asked.words), check=False).returncode

    def logs(self, asked: argparse.Namespace) -> int:
        """Print what a container has printed."""
        sys.stdout.write((self._folder / f"{asked.name}.log").read_text())
        return 0

    def stop(self, asked: argparse.Namespace) -> int:
        """Send SIGTERM, and print the container's exit code, unlike an engine."""
        process = os.pidfd_open(self._read(f"{asked.name}.container")["pid"])
        signal.pidfd_send_signal(process, signal.SIGTERM)
        if not ended(process, STOP_SECONDS):
            signal.pidfd_send_signal(process, signal.SIGKILL)
        code = self._folder / f"{asked.name}.code"
        eventually(lambda: code.exists() or None)
        sys.stdout.write(f"{asked.name} {code.read_text()}")
        return 0

    def _inside(self, asked: argparse.Namespace, *words: str) -> list[str]:
        known = self._read(f"{asked.name}.container")
        start = known["start"]
        place = ["--mount", "--pid", "--ipc", "--root", "--wd"]
        user = ["--setuid", str(start["user"]), "--setgid", str(start["user"])]
        variables = [f"{name}={value}" for name, value in start["environment"].items()]
        enter = ["nsenter", "--target", str(known["pid"]), *place, *user, "--"]
        return [*enter, "env", "--ignore-environment", *variables, *words]

    def _volume(self, text: str, image: dict[str, Any]) -> tuple[str, str]:
        outside, inside = text.split(":")
        if not outside.startswith("/"):
            covered = Path(image["root"] + inside)
            volume = self._folder / "volumes" / outside
            if not volume.exists():
                volume.mkdir(parents=True)
                owner = covered.stat()
                os.chown(volume, owner.st_uid, owner.st_gid)
                shutil.copymode(covered, volume)
            outside = str(volume)
        return outside, inside

    def _read(self, name: str) -> Any:
        return json.loads((self._folder / name).read_text())

    def _write(self, name: str, value: Any) -> None:
        (self._folder / name).write_text(json.dumps(value))


def image_file(tag: str) -> str:
    """Return the name of the file of an image."""
    return f"{tag.replace('/', '_')}.image"


def unshared(start: Start) -> list[str]:
    """Return the command of a container."""
    return ["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", *launched(start)]


def children(pid: int) -> str | None:
    """Return the first child of a process; None: it has none, or is gone."""
    try:
        return next(iter(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()), None)
    except FileNotFoundError:
        return None


def parsed(words: list[str]) -> argparse.Namespace:
    """Read a command line. Raises SystemExit: a word is not known."""
    parser = argparse.ArgumentParser(prog="docker", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", allow_abbrev=False)
    for option in ("--file", "--target", "--tag"):
        build.add_argument(option, required=True)
    build.add_argument("context")
    run = commands.add_parser("run", allow_abbrev=False)
    for option in ("--detach", "--read-only", "--rm"):
        run.add_argument(option, action="store_true")
    # What ends by itself is not started again here, and no command waits for this.
    run.add_argument("--restart", choices=("no", "unless-stopped"))
    for option in ("--name", "--network"):
        run.add_argument(option)
    for option in ("--publish", "--volume", "--env"):
        run.add_argument(option, action="append", default=[])
    run.add_argument("image")
    run.add_argument("words", nargs=argparse.REMAINDER)
    for name in ("start", "stop", "logs", "health", "push"):
        commands.add_parser(name, allow_abbrev=False).add_argument("name")
    execute = commands.add_parser("exec", allow_abbrev=False)
    execute.add_argument("name")
    execute.add_argument("words", nargs=argparse.REMAINDER)
    return parser.parse_args(words)


if __name__ == "__main__":
    given = parsed(sys.argv[1:])
    sys.exit(getattr(Engine(Path(os.environ["ENGINE"])), given.command)(given))
