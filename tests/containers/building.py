"""Builds the stages of a Containerfile in folders, by executing its instructions.

The base image is an archive of a minimal Debian. RUN changes the root to the stage's folder; what
else the engine of a user would bring, such as the network's certificates, is bound there meanwhile.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.containers.containerfile import (
    Ignored,
    Instruction,
    Stage,
    Unsupported,
    expanded,
    pairs,
    stages,
    words_of,
)
from tests.containers.launch import Start

LAUNCH = Path(__file__).with_name("launch.py")
BASE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PASSED = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT")
"""Variables of this machine that say where its package index is."""

RUN_SECONDS = 280.0


@dataclass(frozen=True)
class Image:
    """A stage that is built: its files and what the engine starts."""

    root: Path
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": BASE_PATH})
    user: int = 0
    directory: str = "/"
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


class NotBuilt(Exception):
    """A command of the file has failed; carries its output."""


class Builder:
    """Builds stages, each once."""

    def __init__(
        self,
        project: Path,
        base: Path,
        folder: Path,
        arguments: Mapping[str, str] | None = None,
        file: str = "Containerfile",
    ) -> None:
        """Prepare.

        Args:
            project: folder with the Containerfile, which is also the context.
            base: archive of the base image.
            folder: where the stages are made.
            arguments: values of ARG, as of `--build-arg`.
            file: the Containerfile, relative to the project.

        Raises Unsupported.
        """
        self._project = project
        self._base = base
        self._folder = folder
        self._arguments = dict(arguments or {})
        self._defaults, found = stages((project / file).read_text())
        self.stages = {stage.name: stage for stage in found}
        self._built: dict[str, Image] = {}
        self._context: Path | None = None

    def build(self, name: str) -> Image:
        """Build a stage and all that it needs. Raises Unsupported, NotBuilt."""
        if name not in self._built:
            stage = self.stages[name]
            image = self._begun(stage)
            variables: dict[str, str] = {}
            for one in stage.instructions:
                image = self._execute(one, image, variables)
            self._built[name] = image
        return self._built[name]

    def _begun(self, stage: Stage) -> Image:
        source = expanded(stage.source, {**self._defaults, **self._arguments})
        root = self._folder / stage.name
        if source in self.stages:
            before = self.build(source)
            subprocess.run(["cp", "-a", "--reflink=auto", before.root, root], check=True)
            return replace(before, root=root)
        if source != self._defaults.get("BASE"):
            raise Unsupported(f"FROM {source}: only BASE and stages are there")
        root.mkdir()
        words = ["tar", "--extract", "--numeric-owner", "--same-permissions"]
        subprocess.run([*words, "--directory", root, "--file", self._base], check=True)
        return Image(root)

    def _execute(self, one: Instruction, image: Image, variables: dict[str, str]) -> Image:
        known = {**image.environment, **variables}
        match one.name:
            case "ARG":
                name, equals, default = one.rest.partition("=")
                variables[name] = self._arguments.get(name, default if equals else "")
            case "ENV":
                return replace(image, environment={**image.environment, **pairs(one.rest, known)})
            case "LABEL":
                return replace(image, labels={**image.labels, **pairs(one.rest, known)})
            case "WORKDIR":
                directory = os.path.join(image.directory, expanded(one.rest, known))
                (image.root / directory.lstrip("/")).mkdir(parents=True, exist_ok=True)
                return replace(image, directory=directory)
            case "USER":
                user, _, group = one.rest.partition(":")
                if not user.isdigit() or user != group:
                    raise one.fail("is not of the form NUMBER:NUMBER, with the same number")
                return replace(image, user=int(user))
            case "COPY":
                self._copy(one, image, known)
            case "RUN":
                self._run(one, image, known)
            case "ENTRYPOINT":
                return replace(image, entrypoint=tuple(words_of(one, one.rest)), command=())
            case "CMD":
                return replace(image, command=tuple(words_of(one, one.rest)))
            case "HEALTHCHECK":
                return replace(image, health=_health(one))
            case "EXPOSE":  # says something to people, and does nothing
                if not one.rest.isdigit():
                    raise one.fail("is not a number")
            case _:
                raise one.fail("cannot be executed")
        return image

    def _copy(self, one: Instruction, image: Image, known: Mapping[str, str]) -> None:
        words = shlex.split(expanded(one.rest, known))
        source = self.context
        how = ["--recursive", "--no-dereference", "--preserve=mode,timestamps,links"]
        if words[0].startswith("--from="):
            source = self.build(words.pop(0).removeprefix("--from=")).root
            how = ["--archive", "--reflink=auto"]
        if any(word.startswith("--") for word in words) or len(words) < 2:
            raise one.fail("has an option that is not known, or no target")
        *names, target = words
        inside = image.root / os.path.join(image.directory, target).lstrip("/")
        for name in names:
            found = source / name.lstrip("/")
            if not found.exists():
                raise one.fail(f"{name} is not there, or ignored")
            if found.is_dir():
                if len(names) > 1:
                    raise one.fail("copies a folder and something else")
                inside.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cp", *how, f"{found}/.", inside], check=True)
            else:
                if not target.endswith("/"):
                    raise one.fail("copies a file to a target that is no folder")
                inside.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cp", *how, found, inside], check=True)

    @property
    def context(self) -> Path:
        """A folder with the files that an engine gets."""
        if self._context is None:
            self._context = self._folder / "context"
            ignored = Ignored((self._project / ".containerignore").read_text())
            copied(self._project, self._context, ignored)
        return self._context

    def _run(self, one: Instruction, image: Image, known: Mapping[str, str]) -> None:
        if one.rest.startswith(("--", "[")):
            raise one.fail("has an option, or is not for a shell")
        if image.user:
            raise one.fail("is after USER")
        binds = [("/etc/resolv.conf", "/etc/resolv.conf")]
        environment = {**known, **_index(), "HOME": "/root"}
        trusted = os.environ.get("PIP_CERT", CERTIFICATES)
        if Path(trusted).exists():
            binds.append((trusted, CERTIFICATES))
            environment["PIP_CERT"] = CERTIFICATES
        start = Start(
            root=str(image.root),
            binds=binds,
            read_only=False,
            user=0,
            directory=image.directory,
            environment=environment,
            words=["/bin/sh", "-c", one.rest],
        )
        done = subprocess.run(
            [*("unshare", "--mount", "--pid", "--fork", "--kill-child"), *launched(start)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        if done.returncode:
            raise NotBuilt(f"line {one.line}: RUN {one.rest}\n{done.stdout}")


def launched(start: Start) -> list[str]:
    """Return the command that becomes the process."""
    return [sys.executable, str(LAUNCH), json.dumps(start)]


def copied(project: Path, target: Path, ignored: Ignored) -> None:
    """Copy what is not ignored. Folders that the first pattern of ours leaves out are not read."""
    for folder, inside, names in os.walk(project):
        here = Path(folder).relative_to(project)
        inside[:] = [name for name in inside if not _pruned(str(here / name), ignored)]
        for name in names:
            if not ignored(str(here / name)):
                (target / here).mkdir(parents=True, exist_ok=True)
                shutil.copy2(Path(folder, name), target / here / name, follow_symlinks=False)


def _pruned(path: str, ignored: Ignored) -> bool:
    """Return whether a folder can hold nothing that is copied."""
    return ignored(path) and not ignored.lets_in_below(path)


def _index() -> dict[str, str]:
    names = [*PASSED, *(name for name in os.environ if name.lower().endswith("_proxy"))]
    return {name: os.environ[name] for name in names if name in os.environ}


def _health(one: Instruction) -> tuple[str, ...]:
    words = one.rest.split(" CMD ", 1)
    options = words[0].split()
    known = ("--interval", "--timeout", "--start-period", "--retries")
    if len(words) != 2 or not all(option.partition("=")[0] in known for option in options):
        raise one.fail("has an option that is not known, or no CMD")
    return tuple(words_of(one, words[1]))
