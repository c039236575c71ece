"""Every section stands once: a merge can leave two, each with its own words for the same thing."""

import re
from pathlib import Path

import pytest

from tests.docs.test_links import DOCUMENTS, ROOT

HEADING = re.compile(r"(#+) (.*)")


def repeated(text: str) -> list[tuple[str, ...]]:
    """Return the headings that stand more than once below the same ones."""
    above: list[str] = []
    seen: set[tuple[str, ...]] = set()
    found = []
    code = False
    for line in text.splitlines():
        code ^= line.startswith("```")
        if code or not (heading := HEADING.match(line)):
            continue
        depth = len(heading[1])
        above = [*above[: depth - 1], *[""] * (depth - 1 - len(above)), heading[2]]
        if tuple(above) in seen:
            found.append(tuple(above))
        seen.add(tuple(above))
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_section_stands_once(document: Path) -> None:
    """No document has two sections of the same name in the same place."""
    assert repeated(document.read_text()) == []


def test_a_repeated_section_is_found() -> None:
    """The control: the same name below another heading, or in code, is none."""
    text = "# A\n## B\n### C\n## D\n### C\n```\n## B\n```\n"
    assert repeated(text) == []
    assert repeated(f"{text}## B\n") == [("A", "B")]
