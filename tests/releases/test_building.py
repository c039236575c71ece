"""`make release` builds the same bytes from the same commit, and refuses contradictions.

SPHINX and CYCLONEDX are the programs that it builds with. It has built dist/ before these tests.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from datetime import datetime
from pathlib import Path

import pytest

from moorage import __version__

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
PROGRAMS = [os.environ[name] for name in ("SPHINX", "CYCLONEDX")]
FILES = {
    f"moorage-{__version__}-py3-none-any.whl",
    f"moorage-{__version__}.tar.gz",
    f"moorage-docs-{__version__}.tar.gz",
    f"moorage-openapi-{__version__}.json",
    f"moorage-sbom-{__version__}.cdx.json",
    *("moorage.pyz", "RELEASE_NOTES.md", "SHA256SUMS"),
}
SBOM = DIST / f"moorage-sbom-{__version__}.cdx.json"
BUILD = "from flit_core import buildapi as b; b.build_sdist('dist'); b.build_wheel('dist')"
ELSEWHERE = {
    "SOURCE_DATE_EPOCH": "1000000000",
    "TZ": "Pacific/Auckland",
    "LC_ALL": "C",
    "LANGUAGE": "de",
    "PYTHONHASHSEED": "7",
    "PYTHONUTF8": "0",
}
"""Variables that must have no effect."""


def git(folder: Path, *words: str) -> str:
    """Run git in a folder; return what it prints."""
    command = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def cloned(folder: Path) -> Path:
    """Return a clone of the checkout, without its tags."""
    git(ROOT, "clone", "--quiet", "--no-tags", str(ROOT), str(folder))
    return folder


def release(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Build the release of a clone, as `make release` does."""
    return subprocess.run(
        [sys.executable, "scripts/release", *PROGRAMS],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        umask=0o077 if variables else -1,
        check=False,
    )


def sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a folder."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


def differing(one: Path, other: Path) -> set[str]:
    """Return the names of files that are not the same in two folders."""
    ours, theirs = sums(one), sums(other)
    return {name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}


def test_the_same_bytes_elsewhere(tmp_path: Path) -> None:
    """In a clone, later, with another umask, locale, time zone and clock of the build."""
    clone = cloned(tmp_path / "a folder with another name")
    done = release(clone, **ELSEWHERE)
    assert done.returncode == 0, done.stderr
    assert differing(DIST, clone / "dist") == set()


def test_a_planted_time_is_found(tmp_path: Path) -> None:
    """The control: what is built with the times of files differs, and only that."""
    folders = [tmp_path / name for name in ("one", "two")]
    for at, folder in enumerate(folders):
        archive = subprocess.run(
            ["git", "archive", "HEAD", "src", "pyproject.toml", "README.md", "LICENSE"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        folder.mkdir()
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        (folder / "dist").mkdir()
        os.utime(folder / "src/moorage/__init__.py", (10**9 + at * 10**8,) * 2)
        without = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}
        subprocess.run([sys.executable, "-c", BUILD], cwd=folder, env=without, check=True)
        (folder / "dist/same").touch()
    found = differing(*(folder / "dist" for folder in folders))
    assert found >= {f"moorage-{__version__}-py3-none-any.whl"}
    assert "same" not in found


def test_what_it_has() -> None:
    """Every file, with its checksum, and of the commit's time."""
    chart = {f"moorage-{__version__}.tgz"} if (ROOT / "deploy/helm/moorage").exists() else set()
    assert {path.name for path in DIST.iterdir()} == FILES | chart
    lines = (DIST / "SHA256SUMS").read_text().splitlines()
    listed = {name: digest for digest, name in (line.split("  ") for line in lines)}
    found = sums(DIST)
    del found["SHA256SUMS"]
    assert listed == found
    made = int(git(ROOT, "log", "-1", "--format=%ct"))
    with tarfile.open(DIST / f"moorage-docs-{__version__}.tar.gz") as pages:
        assert {entry.mtime for entry in pages} == {made}
        assert {(entry.uid, entry.gid, entry.mode) for entry in pages} == {(0, 0, 0o644)}
        assert f"moorage-docs-{__version__}/README.html" in pages.getnames()
    with zipfile.ZipFile(DIST / f"moorage-{__version__}-py3-none-any.whl") as wheel:
        assert "moorage/__init__.py" in wheel.namelist()
    described = (ROOT / "docs/reference/openapi.json").read_bytes()
    assert (DIST / f"moorage-openapi-{__version__}.json").read_bytes() == described
    ran = subprocess.run([DIST / "moorage.pyz", "--version"], capture_output=True, check=True)
    assert ran.stdout.decode() == f"moorage {__version__}\n"
    assert "](docs/" not in (DIST / "RELEASE_NOTES.md").read_text()
    assert (DIST / "RELEASE_NOTES.md").read_text().strip()


def test_the_bill_of_materials() -> None:
    """It is of the right form, and has each package of the lock with its hashes, and no other."""
    document = json.loads(SBOM.read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    made = datetime.fromisoformat(document["metadata"]["timestamp"]).timestamp()
    assert made == int(git(ROOT, "log", "-1", "--format=%ct"))
    root = document["metadata"]["component"]
    assert (root["name"], root["version"]) == ("moorage", __version__)
    lock = (ROOT / "requirements-server.lock").read_text()
    pinned = {*re.findall(r"^([\w.-]+)==(\S+)", lock, flags=re.M)}
    found = {(one["name"].lower(), one["version"]) for one in document["components"]}
    assert found == pinned
    assert len(pinned) > 40
    hashes = {*re.findall(r"sha256:(\w+)", lock)}
    assert hashes == {*re.findall(r'"content": "(\w{64})"', SBOM.read_text())}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a clone that tests change."""
    return cloned(tmp_path_factory.mktemp("clone") / "moorage")


def test_a_tag_with_another_version(clone: Path) -> None:
    """It is refused with one line; so is a version that the changelog lacks, or has without a date.

    And so are a chart of another version, and a commit that is not on main.
    """
    git(clone, "tag", "v9.9.9")
    assert refusal(clone) == (
        f"release: the commit has the tag v9.9.9, but src/moorage/__init__.py has the version"
        f" {__version__}: move the tag, or change the version"
    )
    git(clone, "tag", "--delete", "v9.9.9")
    commit(clone, "src/moorage/__init__.py", f'"{__version__}"', '"9.9.9"')
    git(clone, "tag", "v9.9.9")
    assert refusal(clone) == "release: CHANGELOG.md has no section 9.9.9"
    commit(clone, "CHANGELOG.md", r"## .*", "## 9.9.9 - unreleased")
    git(clone, "tag", "--force", "v9.9.9")
    assert "calls 9.9.9 unreleased: give it a date" in refusal(clone)
    (clone / "deploy/helm/moorage").mkdir(parents=True, exist_ok=True)
    chart = clone / "deploy/helm/moorage/Chart.yaml"
    chart.write_text('name: moorage\nversion: 9.9.9\nappVersion: "9.9.8"\n')
    commit(clone, "CHANGELOG.md", "unreleased", "2026-01-02")
    git(clone, "tag", "--force", "v9.9.9")
    assert refusal(clone).endswith("Chart.yaml: appVersion is 9.9.8, must be 9.9.9")
    chart.write_text('name: moorage\nversion: 9.9.9\nappVersion: "9.9.9"\n')
    commit(clone, "CHANGELOG.md", "2026-01-02", "2026-01-03")
    git(clone, "update-ref", "refs/remotes/origin/main", "HEAD~1")
    git(clone, "tag", "--force", "v9.9.9")
    said = "the commit of v9.9.9 is not on main: merge it, then move the tag"
    assert refusal(clone) == f"release: {said}"
    assert not (clone / "dist").exists()


def commit(folder: Path, name: str, pattern: str, replacement: str) -> None:
    """Replace the first hit of a pattern in a file, and commit everything."""
    text, count = re.subn(pattern, replacement, (folder / name).read_text(), count=1)
    assert count == 1
    (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Change")


def refusal(folder: Path) -> str:
    """Return the one line with which a release is refused."""
    done = release(folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr.strip()


def test_documents_name_the_version() -> None:
    """The version stands in one place; what else names it says the same."""
    assert f"Moorage is at version {__version__}" in (ROOT / "README.md").read_text()
    assert re.search(rf"^## {__version__} - ", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    pages = [path.read_text() for path in (ROOT / "docs/howto").glob("*.md")]
    named = {
        *re.findall(r"registry\.example/moorage:([\w.-]+)|image\.tag=([\w.-]+)", "".join(pages))
    }
    assert named == {(__version__, ""), ("", __version__)}
    info = json.loads((ROOT / "docs/reference/openapi.json").read_text())["info"]
    assert info["version"] == __version__
