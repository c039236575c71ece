"""Everything that the documentation points to is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)")
CODE = re.compile(r"`([^`\s]+)`")
TOP = {path.name for path in ROOT.iterdir()}


def linked(text: str) -> list[str]:
    """The relative targets of a text's links."""
    return LINK.findall(text)


def paths(text: str) -> list[str]:
    """What a text in back-quotes calls by a path: from the root, or from `src/moorage/`."""
    floors = {path.name for path in (ROOT / "src/moorage").iterdir()}
    named = [word for word in CODE.findall(text) if "/" in word or word.endswith(".py")]
    return [word for word in named if word.split("/")[0] in TOP | floors and "<" not in word]


def exists(word: str) -> bool:
    """Is it a file or folder, seen from the root or from the package?"""
    return any((folder / word).exists() for folder in (ROOT, ROOT / "src/moorage"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    """No document links to a file that is not there."""
    dead = [link for link in linked(document.read_text()) if not (document.parent / link).exists()]
    assert dead == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_paths_exist(document: Path) -> None:
    """No document names a file of the project that is not there."""
    missing = [word for word in paths(document.read_text()) if not exists(word)]
    assert missing == []


def test_architecture_names_the_floors() -> None:
    """ARCHITECTURE.md names every package of the two upper levels, and many files."""
    named = paths((ROOT / "ARCHITECTURE.md").read_text())
    assert len(named) >= 40
    package = ROOT / "src/moorage"
    folders = [path.parent for path in package.glob("*/**/__init__.py")]
    unnamed = [
        str(folder.relative_to(package))
        for folder in folders
        if not any(str(folder.relative_to(package)) in word for word in named)
    ]
    assert unnamed == []


def test_a_dead_link_is_noticed() -> None:
    """Links and paths are found where they stand; addresses elsewhere are not ours."""
    text = "See [a](docs/none.md#there), [b](https://example.org/x) and `src/moorage/none.py`."
    assert linked(text) == ["docs/none.md"]
    assert paths(text) == ["src/moorage/none.py"]
    assert not exists("src/moorage/none.py")
