"""Each example of a rules file can be read."""

import re
import tomllib
from pathlib import Path

import pytest

from moorage.integrations.ironic.rules import parse

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/howto/ironic-rules.md"
EXAMPLES = re.findall(r"^```toml\n(.*?)^```", DOCUMENT.read_text(), flags=re.M | re.S)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples(example: str) -> None:
    """It has rules, each with a pool."""
    assert parse(tomllib.loads(example)).rules


def test_there_are_examples() -> None:
    """They are found."""
    assert len(EXAMPLES) >= 6
