"""All files and sections that the documentation links to, and all files that it names, exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *(page for folder in ("docs", "deploy") for page in sorted((ROOT / folder).rglob("*.md"))),
]

LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)")
ANCHORED = re.compile(r"\]\((?!https?://)([^)#\s]*)#([^)\s]+)\)")
HEADING = re.compile(r"#+ (.*)")
CODE = re.compile(r"`([^`\s]+)`")
TOP = {path.name for path in ROOT.iterdir()} - {"build", "dist"}  # what make builds may be missing


def link_targets(text: str) -> list[str]:
    """Return the relative targets of a text's links."""
    return LINK.findall(text)


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as GitHub forms them."""
    found: dict[str, int] = {}
    code = False
    for line in text.splitlines():
        code ^= line.startswith("```")
        if code or not (heading := HEADING.match(line)):
            continue
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found[anchor] = found.get(anchor, -1) + 1
        if found[anchor]:
            found[f"{anchor}-{found[anchor]}"] = 0
    return {*found}


def dead_anchors(document: Path, text: str) -> list[str]:
    """Return the links of a document that name a section which does not exist."""
    found = []
    for path, anchor in ANCHORED.findall(text):
        target = document.parent / path if path else document
        if target.suffix == ".md" and anchor not in anchors(target.read_text()):
            found.append(f"{path}#{anchor}")
    return found


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
def test_linked_sections_exist(document: Path) -> None:
    """Every link to a section, also of the same document, leads to a heading."""
    assert dead_anchors(document, document.read_text()) == []


def test_a_dead_anchor_is_found() -> None:
    """Anchors are formed as GitHub forms them; those of other sites are ignored."""
    text = "# A `b.c`: [d](e.md), f\n## G\n## G\n```\n# no\n```\n"
    assert anchors(text) == {"a-bc-d-f", "g", "g-1"}
    document = ROOT / "README.md"
    links = "[a](#none) [b](docs/glossary.md#none) [c](https://example.org/#x) [d](LICENSE#x)"
    assert dead_anchors(document, links) == ["#none", "docs/glossary.md#none"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_paths_exist(document: Path) -> None:
    """Every path of the project that a document names exists."""
    missing = [word for word in named_paths(document.read_text()) if not exists(word)]
    assert missing == []


def described(folder: Path) -> set[str]:
    """Return the folders that the docstring of a package names."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    return {word.rstrip("/").split("/")[-1] for word in CODE.findall(text) if word.endswith("/")}


def test_every_package_is_named() -> None:
    """ARCHITECTURE.md names each floor, and each folder unless the docstring of its parent does."""
    named = named_paths((ROOT / "ARCHITECTURE.md").read_text())
    package = ROOT / "src/moorage"
    unnamed = []
    for folder in (path.parent for path in package.glob("*/**/__init__.py")):
        name = str(folder.relative_to(package))
        if any(f"{name}/" in f"{word}/" for word in named):
            continue
        if "/" not in name or folder.name not in described(folder.parent):
            unnamed.append(name)
    assert unnamed == []


def test_a_dead_link_is_found() -> None:
    """Relative links and paths are found; links to other sites are ignored."""
    text = "See [a](docs/none.md#there), [b](https://example.org/x) and `src/moorage/none.py`."
    assert link_targets(text) == ["docs/none.md"]
    assert named_paths(text) == ["src/moorage/none.py"]
    assert not exists("src/moorage/none.py")
