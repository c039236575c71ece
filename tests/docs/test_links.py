"""All files that the documentation links to or names exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)")
CODE = re.compile(r"`([^`\s]+)`")
TOP = {path.name for path in ROOT.iterdir()}


def link_targets(text: str) -> list[str]:
    """Return the relative targets of a text's links."""
    return LINK.findall(text)


def named_paths(text: str) -> list[str]:
    """Return the paths in back-quotes, relative to the root or to `src/moorage/`."""
    packages = {path.name for path in (ROOT / "src/moorage").iterdir()}
    named = [word for word in CODE.findall(text) if "/" in word or word.endswith(".py")]
    return [word for word in named if word.split("/")[0] in TOP | packages and "<" not in word]


def exists(word: str) -> bool:
    """Return whether this is a file or folder, relative to the root or to the package."""
    return any((folder / word).exists() for folder in (ROOT, ROOT / "src/moorage"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_link_targets_exist(document: Path) -> None:
    """Every relative link of a document leads to an existing file."""
    targets = link_targets(document.read_text())
    assert [target for target in targets if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_paths_exist(document: Path) -> None:
    """Every path of the project that a document names exists."""
    missing = [word for word in named_paths(document.read_text()) if not exists(word)]
    assert missing == []


def test_architecture_names_every_package() -> None:
    """ARCHITECTURE.md names every package, at any depth, and at least 40 paths."""
    named = named_paths((ROOT / "ARCHITECTURE.md").read_text())
    assert len(named) >= 40
    package = ROOT / "src/moorage"
    folders = [path.parent for path in package.glob("*/**/__init__.py")]
    unnamed = [
        str(folder.relative_to(package))
        for folder in folders
        if not any(str(folder.relative_to(package)) in word for word in named)
    ]
    assert unnamed == []


def test_a_dead_link_is_found() -> None:
    """Relative links and paths are found; links to other sites are ignored."""
    text = "See [a](docs/none.md#there), [b](https://example.org/x) and `src/moorage/none.py`."
    assert link_targets(text) == ["docs/none.md"]
    assert named_paths(text) == ["src/moorage/none.py"]
    assert not exists("src/moorage/none.py")
