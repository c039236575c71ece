"""Names in backticks that look like paths or classes exist: documents age with the code."""

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "moorage"

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(PACKAGE.rglob("__init__.py")),
]

CODE = re.compile(r"`([^`\n]+)`")
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"(?:[a-z_*<>{}0-9.-]+/)*[a-z_*0-9-]+\.(?:py|sql|sh)|(?:[a-z_0-9]+/)+")
CLASS = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+")

FOREIGN = {
    # Of OpenStack, PyYAML, PostgreSQL and Python.
    "BaseLoader",
    "NamedTuple",
    "NoValidHost",
    "SyncRep",
    "nova/scheduler/client/report.py",
    "nova/scheduler/manager.py",
}


@cache
def defined() -> set[str]:
    """Return the names of all classes, functions and constants of the project."""
    names: set[str] = set()
    for tree in (PACKAGE, ROOT / "tests", ROOT / "bench"):
        for path in tree.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    names.add(node.name)
                elif isinstance(node, ast.AnnAssign | ast.Assign):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    names.update(one.id for one in targets if isinstance(one, ast.Name))
    return names


@cache
def files() -> set[str]:
    """Return all files and folders of the project, without environments and what git keeps."""
    found: set[str] = set()
    for folder, inside, names in os.walk(ROOT):
        inside[:] = [
            name for name in inside if not name.startswith((".venv", ".git", ".baselines"))
        ]
        found |= {str(Path(folder, name).relative_to(ROOT)) for name in (*inside, *names)}
    return found


def is_file(text: str) -> bool:
    """Is there a file or folder of this name, from any place where a reader would look?"""
    wanted = text.rstrip("/").replace("<engine>", "sqlite").replace("<room>", "ledger")
    if "*" in wanted or "{" in wanted:
        return True
    return any(file == wanted or file.endswith("/" + wanted) for file in files())


def stale(text: str) -> Iterator[str]:
    """Yield the names in backticks that do not exist."""
    for found in CODE.findall(BLOCK.sub("", text)):
        missing_file = PATH.fullmatch(found) and not is_file(found)
        missing_class = CLASS.fullmatch(found) and found not in defined()
        if (missing_file or missing_class) and found not in FOREIGN:
            yield found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_in_backticks_exist(document: Path) -> None:
    """Every path and class that a document names is there."""
    assert sorted(set(stale(document.read_text()))) == []


def test_planted_names_are_found() -> None:
    """A control: a path and a class that do not exist are found, existing ones are not."""
    text = "`no/such/file.py`, `NoSuchClass`, `service/feed/`, `transactor.py`, `Transactor`"
    assert list(stale(text)) == ["no/such/file.py", "NoSuchClass"]
