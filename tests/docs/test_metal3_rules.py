"""The guide to metal3: its example of a rules file can be read, and its table has all fields."""

import re
import tomllib
from pathlib import Path

from moorage.integrations.metal3.rules import FIELDS, parse

GUIDE = (Path(__file__).resolve().parents[2] / "docs/howto/metal3.md").read_text()
(SECTION,) = re.findall(r"^## Several pools\n(.*?)^## ", GUIDE, flags=re.M | re.S)


def test_the_example() -> None:
    """It has rules and exemptions that the command accepts."""
    (example,) = re.findall(r"^```toml\n(.*?)^```", SECTION, flags=re.M | re.S)
    rules = parse(tomllib.loads(example))
    assert len(rules.rules) >= 4 and rules.exempt


def test_the_table_of_fields() -> None:
    """It has each field that rules can name, and no other."""
    cells = re.findall(r"^\| (`.*?) \|", SECTION, flags=re.M)
    names = re.findall(r"`([a-z_]+)(?:\.NAME)?`", " ".join(cells))
    assert sorted(names) == sorted(FIELDS)
