"""No document has a section twice: a merge can leave two versions of the same section."""

import re
from pathlib import Path

import pytest

from tests.docs.test_links import DOCUMENTS, ROOT

HEADING = re.compile(r"(#+) (.*)")


def repeated(text: str) -> list[tuple[str, ...]]:
    """Return the headings that occur more than once below the same parent headings."""
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
def test_each_section_occurs_once(document: Path) -> None:
    """No two sections with the same parent have the same name."""
    assert repeated(document.read_text()) == []


def test_a_repeated_section_is_found() -> None:
    """The same name below another heading, or in a code block, is not a repetition."""
    text = "# A\n## B\n### C\n## D\n### C\n```\n## B\n```\n"
    assert repeated(text) == []
    assert repeated(f"{text}## B\n") == [("A", "B")]
