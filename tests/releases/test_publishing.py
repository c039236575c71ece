"""What publishes a release: the workflow, and the script that it calls, here without uploads.

The workflow runs nothing but targets of make, actions by the hash of their commit, and each job has
only the rights that it needs.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage import __version__

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = Path(__file__).with_name("stand_in.py")
WORKFLOW = ROOT / ".github/workflows/release.yml"
RIGHTS: dict[str, dict[str, str]] = {
    "build": {"contents": "read"},
    "package-index": {"contents": "read", "id-token": "write"},
    "images": {
        "attestations": "write",
        "contents": "read",
        "id-token": "write",
        "packages": "write",
    },
    "chart": {"contents": "read", "packages": "write"},
    "release": {"attestations": "write", "contents": "write", "id-token": "write"},
}
ATTESTED = {"images": "build/images.sha256", "release": "dist/SHA256SUMS"}
"""The jobs that sign where something comes from, and the list of what."""

ATTEST = "actions/attest-build-provenance@"
CHECKOUT = "actions/checkout@"
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
            uses, given = str(step.get("uses")), step.get("with", {})
            if uses.startswith(CHECKOUT) and given.get("persist-credentials") is not False:
                yield f"{name} leaves its credentials"
            if uses.startswith(CHECKOUT) and name == "build" and given.get("fetch-depth") != 0:
                yield f"{name} cannot tell whether the commit is on main"
        if "write" in job["permissions"].values() and job.get("environment") != "release":
            yield f"{name} publishes without asking"
        signed = [step["with"] for step in job["steps"] if ATTEST in step.get("uses", "")]
        if signed != [{"subject-checksums": ATTESTED[one]} for one in ATTESTED if one == name]:
            yield f"{name} does not attest its own files"
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
        ("persist-credentials: false", "clean: true", "build leaves its credentials"),
        ("fetch-depth: 0", "fetch-depth: 1", "build cannot tell whether"),
        ("    environment: release\n", "", "package-index publishes without asking"),
        ("checksums: build/images.sha256", "path: LICENSE", "images does not attest its own"),
        ("checksums: dist/SHA256SUMS", "path: LICENSE", "release does not attest its own"),
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
    """Return a function that runs `scripts/publish` in a copy, and returns what it has done.

    Programs that upload are stand-ins, with a folder as their registry.
    """
    for name in ("scripts/publish", "scripts/images", "src/moorage/__init__.py", "Containerfile"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".gitignore").write_text("/bin\n/dist\n/build\n/registry\n")
    commit(tmp_path, "init", "--quiet")
    registry = tmp_path / "registry"
    registry.mkdir()
    (tmp_path / "bin").mkdir()
    for name in ("docker", "helm", "gh"):
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} {name} "$@"\n')
        program.chmod(0o755)

    def run(what: str, code: int = 0, **variables: str) -> list[str]:
        words = registry / "words"
        words.write_text("")
        done = subprocess.run(
            ["scripts/publish", what],
            cwd=tmp_path,
            env={
                "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
                "FOLDER": str(registry),
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return words.read_text().splitlines() + done.stdout.splitlines() + done.stderr.splitlines()

    return run


def commit(folder: Path, *before: str) -> str:
    """Run git with some words, commit everything, and return the commit."""
    words = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org"]
    for one in (before, ("add", "--all"), ("commit", "--quiet", "--allow-empty", "-m", "x")):
        if one:
            subprocess.run([*words, *one], cwd=folder, check=True)
    done = subprocess.run(
        [*words, "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


REGISTRY = {
    "IMAGE": "registry.example/Fleet/Moorage",
    "REGISTRY_USER": "alice",
    "REGISTRY_TOKEN": "secret",
}


IMAGE = f"registry.example/fleet/moorage:{__version__}"
TAGS = {"all": IMAGE, "server": f"{IMAGE}-server", "client": f"{IMAGE}-client"}


def did(lines: list[str], what: str) -> list[str]:
    """Return what followed some words in the commands."""
    return [line.removeprefix(f"{what} ") for line in lines if line.startswith(f"{what} ")]


def test_images_are_pushed(publish: Any, tmp_path: Path) -> None:
    """Each target has its tag; the token is read, not shown to other users of the machine."""
    here = commit(tmp_path)
    (tmp_path / "src/moorage/alice.token").write_text("secret")
    lines = publish("images", SOURCE="https://forge.example/fleet", **REGISTRY)
    assert lines[0] == "docker login registry.example --username alice --password-stdin"
    assert (tmp_path / "registry/read").read_text() == "secret"
    label = "--label org.opencontainers.image.source=https://forge.example/fleet "
    for built, (target, tag) in zip(did(lines, "docker build"), TAGS.items(), strict=True):
        assert f" --target {target} --tag {tag} --build-arg VERSION={__version__}" in built
        assert f" --build-arg REVISION={here} {label}" in built
    assert did(lines, "docker push") == [*TAGS.values()]
    context = (tmp_path / "registry/context").read_text().splitlines()
    assert "src/moorage/__init__.py" in context
    assert not any("token" in name for name in context), "only what is committed gets there"
    assert "images: changes that are not committed are not in them" in lines
    text = (ROOT / "Containerfile").read_text()
    for target in TAGS:
        assert re.search(rf"^FROM \w+ AS {target}$", text, flags=re.M)


def test_a_published_image_does_not_change(publish: Any, tmp_path: Path) -> None:
    """A second run pushes what is missing; another commit is refused before it is built."""
    publish("images", **REGISTRY)
    sums = (tmp_path / "build/images.sha256").read_text()
    assert [line.split("  ")[1] for line in sums.splitlines()] == [*TAGS.values()]
    (tmp_path / "registry/pushed" / TAGS["client"].replace("/", "_")).unlink()
    lines = publish("images", **REGISTRY)
    assert did(lines, "docker push") == [TAGS["client"]]
    assert len(did(lines, "docker build")) == 1
    assert f"publish: {IMAGE} is there already" in lines
    assert (tmp_path / "build/images.sha256").read_text() == sums
    before = commit(tmp_path)
    commit(tmp_path)
    (tmp_path / "registry/pushed" / TAGS["all"].replace("/", "_")).write_text(before)
    lines = publish("images", 2, **REGISTRY)
    said = f"publish: {IMAGE} exists, of the commit {before}: a published version does not change"
    assert lines[-1] == said
    assert did(lines, "docker build") == did(lines, "docker push") == []


def test_a_registry_that_does_not_answer(publish: Any, tmp_path: Path) -> None:
    """Whether a version exists is not guessed."""
    chart_of(tmp_path)
    for what in ("images", "chart"):
        lines = publish(what, 2, ABSENT="dial tcp: i/o timeout", **REGISTRY)
        assert "exists: " in lines[-1] and "i/o timeout" in lines[-1]
        assert did(lines, "docker push") == did(lines, "helm push") == []


def chart_of(folder: Path, text: str = "chart") -> Path:
    """Put a chart, as `make release` does, and the other files into dist/; return the folder."""
    dist = folder / "dist"
    dist.mkdir(exist_ok=True)
    names = (
        *(f"moorage-{__version__}.tgz", f"moorage-{__version__}.tar.gz", "RELEASE_NOTES.md"),
        f"moorage-{__version__}-py3-none-any.whl",
    )
    for name in names:
        (dist / name).write_text(text)
    listed = subprocess.run(
        ["sha256sum", *names], cwd=dist, capture_output=True, text=True, check=True
    )
    (dist / "SHA256SUMS").write_text(listed.stdout)
    return dist


def test_the_chart(publish: Any, tmp_path: Path) -> None:
    """It is pushed once; a second run leaves it, and refuses another one of this version."""
    chart_of(tmp_path)
    lines = publish("chart", **REGISTRY)
    to = "oci://registry.example/fleet/moorage/charts"
    assert did(lines, "helm push") == [f"dist/moorage-{__version__}.tgz {to}"]
    lines = publish("chart", **REGISTRY)
    assert lines[-1] == f"publish: the chart {__version__} is there already"
    assert did(lines, "helm push") == []
    chart_of(tmp_path, "another")
    said = publish("chart", 2, **REGISTRY)[-1]
    assert said.endswith("exists, and differs: a published version does not change")


@pytest.mark.parametrize("what", ["distributions", "chart", "release"])
def test_only_what_is_listed_is_published(publish: Any, tmp_path: Path, what: str) -> None:
    """A file that differs from its checksum, one that is not listed, and one that is missing."""
    assert publish(what, 2, **REGISTRY)[-1].startswith("publish: there is no dist/SHA256SUMS")
    dist = chart_of(tmp_path)
    for name in ("moorage-evil.whl", ".hidden", "-rf", "moorage-0.whl\nmoorage-1.whl"):
        (dist / name).touch()
        lines = publish(what, 2, **REGISTRY)
        assert "publish: dist/ has other files than those of SHA256SUMS: " in "\n".join(lines)
        assert did(lines, "helm push") == did(lines, "gh") == []
        (dist / name).unlink()
    chart = dist / f"moorage-{__version__}.tgz"
    chart.write_text("another")
    publish(what, 1, **REGISTRY)
    chart.unlink()
    publish(what, 1, **REGISTRY)
    assert not (tmp_path / "build/distributions").exists()


def test_the_distributions(publish: Any, tmp_path: Path) -> None:
    """What the index gets: the wheel and the sdist, and nothing else."""
    chart_of(tmp_path)
    publish("distributions")
    found = {path.name for path in (tmp_path / "build/distributions").iterdir()}
    assert found == {f"moorage-{__version__}-py3-none-any.whl", f"moorage-{__version__}.tar.gz"}


def test_the_release(publish: Any, tmp_path: Path) -> None:
    """It has each listed file, the list, and the digest of each image in its notes."""
    dist = chart_of(tmp_path, "notes\n")
    assert publish("release", 2)[-1].startswith("publish: there is no build/images.sha256")
    publish("images", **REGISTRY)
    (line,) = did(publish("release"), "gh")
    assert line.startswith(f"release create v{__version__} --verify-tag --title ")
    files = sorted(re.findall(r"dist/(\S+)", line))
    assert files == sorted(path.name for path in dist.iterdir())
    notes = (tmp_path / "registry/notes").read_text()
    assert notes.startswith("notes\n\n### Images\n\n* `")
    for tag in TAGS.values():
        assert re.search(rf"^\* `{re.escape(tag)}@sha256:[0-9a-f]{{64}}`$", notes, flags=re.M)


def test_a_missing_token(publish: Any) -> None:
    """It says what to set."""
    assert publish("images", 2)[-1] == ("publish: set IMAGE, REGISTRY_USER and REGISTRY_TOKEN")
    assert publish("everything", 2)[-1].startswith("publish: what: ")
