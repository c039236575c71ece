"""The reference lists exactly the differences that the comparison with the original accepts."""

import re
from pathlib import Path

from tests.compare.judge.defects import DEFECTS, LEFT_BEHIND
from tests.compare.judge.deliberate import CHOICES

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/placement.md"


def headings(section: str) -> list[str]:
    """Return the headings of a section's list: the bold text at the beginning of each entry."""
    text = PAGE.read_text().partition(f"\n### {section}\n")[2].partition("\n#")[0]
    return re.findall(r"^\* \*\*(.+)\.\*\*", text, flags=re.M)


def test_choices() -> None:
    """Every deliberate difference has an entry in the reference, in the same order."""
    assert headings("What Moorage does differently") == [one.name for one in CHOICES]


def test_defects() -> None:
    """Every defect of the original has an entry in the reference, in the same order."""
    names = [LEFT_BEHIND, *(one.name for one in DEFECTS)]
    assert headings("Defects of the original that Moorage does not copy") == names


def test_every_entry_has_a_heading() -> None:
    """Without a heading, the other tests would not see an entry."""
    text = PAGE.read_text().partition("\n### What Moorage does differently\n")[2]
    assert len(re.findall(r"^\* ", text, flags=re.M)) == len(CHOICES) + len(DEFECTS) + 1
