"""The reference lists exactly the differences that the comparison with the original lets pass."""

import re
from pathlib import Path

from tests.compare.judge.defects import DEFECTS, LEFT_BEHIND
from tests.compare.judge.deliberate import CHOICES

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/placement.md"


def headings(section: str) -> list[str]:
    """Return the headings of a section's list: what is bold at the beginning of an entry."""
    text = PAGE.read_text().partition(f"\n### {section}\n")[2].partition("\n#")[0]
    return re.findall(r"^\* \*\*(.+)\.\*\*", text, flags=re.M)


def test_choices() -> None:
    """What Moorage does differently."""
    assert headings("What Moorage does differently") == [one.name for one in CHOICES]


def test_defects() -> None:
    """What the original does wrong."""
    names = [LEFT_BEHIND, *(one.name for one in DEFECTS)]
    assert headings("Defects of the original that Moorage does not copy") == names


def test_every_entry_has_a_heading() -> None:
    """Otherwise it would not be checked."""
    text = PAGE.read_text().partition("\n### What Moorage does differently\n")[2]
    assert len(re.findall(r"^\* ", text, flags=re.M)) == len(CHOICES) + len(DEFECTS) + 1
