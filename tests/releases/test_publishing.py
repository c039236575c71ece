"""What publishes a release: the workflow, and the script that it calls, here without uploads.

The workflow runs nothing but targets of make, actions by the hash of their commit, and each job has
only the rights that it needs.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage import __version__

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / ".github/workflows/release.yml"
RIGHTS: dict[str, dict[str, str]] = {
    "build": {"contents": "read"},
    "package-index": {"id-token": "write"},
    "images": {"contents": "read", "packages": "write"},
    "chart": {"contents": "read", "packages": "write"},
    "release": {"contents": "write"},
}
ACTION = re.compile(r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+(\.\d+)*")
TAG = {"push": {"tags": ["v*"]}}


def targets() -> set[str]:
    """Return the targets of the Makefile that are no files."""
    return {
        name
        for line in re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text(), re.M)
        for name in line.replace("\\", " ").split()
    }


def faults(text: str) -> Iterator[str]:
    """Yield what is wrong with the text of a workflow."""
    document: dict[Any, Any] = yaml.safe_load(text)
    if document[True] != TAG:  # YAML reads `on` as true
        yield "does not begin with a tag alone"
    if document["permissions"] != {}:
        yield "gives rights to all jobs"
    for line in text.splitlines():
        if "uses:" in line and not ACTION.fullmatch(line.strip().removeprefix("- ")):
            yield f"an action without the hash of a commit and its version: {line.strip()}"
    for name, job in document["jobs"].items():
        if job["permissions"] != RIGHTS.get(name):
            yield f"{name} has other rights"
        for step in job["steps"]:
            words = str(step.get("run", "make release")).split()
            if words[0] != "make" or len(words) != 2 or words[1] not in targets():
                yield f"{name} runs {step['run']}"
            checks_out = str(step.get("uses")).startswith("actions/checkout@")
            if checks_out and step["with"] != {"persist-credentials": False}:
                yield f"{name} leaves its credentials"
    for secret in set(re.findall(r"secrets\.\w+", text)):
        yield f"needs {secret}"


def test_the_workflow() -> None:
    """It does what CI does, and uploads."""
    assert [*faults(WORKFLOW.read_text())] == []
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    assert jobs.keys() == RIGHTS.keys()
    assert [step["run"] for step in jobs["build"]["steps"] if "run" in step] == ["make release"]
    for name in RIGHTS.keys() - {"build"}:  # nothing is published if the release is refused
        assert jobs["build"] is not jobs[name] and "build" in before(jobs, name)
    assert before(jobs, "release") == {"build", "package-index", "images", "chart"}


def before(jobs: dict[str, Any], name: str) -> set[str]:
    """Return the jobs that must have ended well before one begins."""
    needs = jobs[name].get("needs", [])
    direct = {needs} if isinstance(needs, str) else {*needs}
    return direct.union(*(before(jobs, one) for one in direct))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("run: make release", "run: make release && x", "build runs"),
        ("run: make release", "run: make reelease", "build runs"),
        ("run: make release", "run: scripts/release", "build runs"),
        ("@8e8c483db84b4bee98b60c0593521ed34d9990e8 # v6.0.1", "@v6", "an action without the hash"),
        (" # v6.0.1", "", "an action without the hash"),
        ("permissions: {}", "permissions: write-all", "gives rights to all jobs"),
        ("      contents: read", "      contents: write", "build has other rights"),
        ("persist-credentials: false", "fetch-depth: 0", "build leaves its credentials"),
        ("${{ github.token }}", "${{ secrets.TOKEN }}", "needs secrets.TOKEN"),
        ('    tags: ["v*"]', '    branches: ["main"]', "does not begin with a tag alone"),
    ],
)
def test_planted_faults_are_found(old: str, new: str, said: str) -> None:
    """The control: each is planted into the workflow."""
    text = WORKFLOW.read_text()
    assert old in text
    assert any(said in fault for fault in faults(text.replace(old, new, 1)))


@pytest.fixture
def publish(tmp_path: Path) -> Any:
    """Return a function that runs `scripts/publish` in a copy, and returns what it has uploaded.

    Programs that upload are stand-ins that note their words, and what they are given to read.
    """
    for name in ("scripts/publish", "src/moorage/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    for name in ("docker", "helm", "gh", "git"):
        program = tmp_path / "bin" / name
        noted = f'echo "{name} $*" >> {tmp_path}/words; '
        reads = f"case $* in *stdin*) cat >> {tmp_path}/read;; esac"
        program.write_text(f"#!/bin/sh\n{'echo abc' if name == 'git' else noted + reads}\n")
        program.chmod(0o755)

    def run(what: str, code: int = 0, **variables: str) -> list[str]:
        words = tmp_path / "words"
        words.write_text("")
        done = subprocess.run(
            ["scripts/publish", what],
            cwd=tmp_path,
            env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return words.read_text().splitlines() + done.stderr.splitlines()

    return run


REGISTRY = {
    "IMAGE": "registry.example/Fleet/Moorage",
    "REGISTRY_USER": "alice",
    "REGISTRY_TOKEN": "secret",
}


def test_images_are_pushed(publish: Any, tmp_path: Path) -> None:
    """Each target has its tag; the token is read, not shown to other users of the machine."""
    did = publish("images", SOURCE="https://forge.example/fleet", **REGISTRY)
    login = "docker login registry.example --username alice --password-stdin"
    assert did[0] == login
    assert (tmp_path / "read").read_text() == "secret"
    image = f"registry.example/fleet/moorage:{__version__}"
    tags = {"all": image, "server": f"{image}-server", "client": f"{image}-client"}
    label = "--label org.opencontainers.image.source=https://forge.example/fleet ."
    assert did[1:] == [
        *(
            f"docker build --file Containerfile --target {target} --tag {tag}"
            f" --build-arg VERSION={__version__} --build-arg REVISION=abc {label}"
            for target, tag in tags.items()
        ),
        *(f"docker push {tag}" for tag in tags.values()),
    ]
    text = (ROOT / "Containerfile").read_text()
    for target in tags:
        assert re.search(rf"^FROM \w+ AS {target}$", text, flags=re.M)


def test_the_chart_and_the_release(publish: Any, tmp_path: Path) -> None:
    """What `make release` has built is uploaded, after its checksums are compared."""
    dist = tmp_path / "dist"
    dist.mkdir()
    assert publish("chart", 2, **REGISTRY)[-1].startswith("publish: there is no dist/moorage-")
    assert publish("release", 2)[-1].startswith("publish: there is no dist/SHA256SUMS")
    (dist / f"moorage-{__version__}.tgz").write_text("chart")
    assert publish("chart", **REGISTRY)[1:] == [
        f"helm push dist/moorage-{__version__}.tgz oci://registry.example/fleet/moorage/charts"
    ]
    (dist / "SHA256SUMS").write_text(f"{'0' * 64}  moorage-{__version__}.tgz\n")
    publish("release", 1)
    command = f"cd {dist} && sha256sum *.tgz > SHA256SUMS"
    subprocess.run(["bash", "-c", command], check=True)
    assert publish("release") == [
        f"gh release create v{__version__} --verify-tag --title Moorage {__version__}"
        f" --notes-file dist/RELEASE_NOTES.md dist/SHA256SUMS dist/moorage-{__version__}.tgz"
    ]


def test_a_missing_token(publish: Any) -> None:
    """It says what to set."""
    assert publish("images", 2)[-1] == ("publish: set IMAGE, REGISTRY_USER and REGISTRY_TOKEN")
    assert publish("everything", 2)[-1].startswith("publish: what: ")
