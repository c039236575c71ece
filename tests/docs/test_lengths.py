"""What a newcomer reads first stays short."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("name", "bytes_max"), [("README.md", 8_192), ("ARCHITECTURE.md", 16_384)])
def test_they_are_short(name: str, bytes_max: int) -> None:
    """A link to another page takes fewer bytes than a paragraph."""
    assert len((ROOT / name).read_bytes()) <= bytes_max


def test_a_release_has_a_page() -> None:
    """The changelog says what changes for users; the rest is in the history."""
    sections = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    assert sections
    for section in sections:
        assert len(section.splitlines()) <= 100, section.splitlines()[0]
