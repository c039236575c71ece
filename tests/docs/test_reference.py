"""The reference documents every setting, error code, command, route and metric, as it is."""

from pathlib import Path
from typing import Any

import msgspec

from moorage.config import FIELDS, Settings
from moorage.core.errors import Code
from moorage.faces.placement.problems import OUTCOMES

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/reference"


def rows(text: str) -> dict[str, list[str]]:
    """The rows of all tables of a text by their first cell, without its back-quotes."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            first, *rest = (cell.strip() for cell in line.strip("|").split(" | "))
            assert first.strip("` ") not in found, f"{first} stands twice"
            found[first.strip("` ")] = rest
    return found


def shown(default: Any) -> str:
    """A setting's default as the reference shows it."""
    if default is None or default == ():
        return "-"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def test_settings() -> None:
    """Every setting is there with its default and its meaning, in the words of the code."""
    described = rows((REFERENCE / "settings.md").read_text())
    defaults = {field.name: field.default for field in msgspec.structs.fields(Settings)}
    expected = {name: [shown(defaults[name]), meaning] for name, meaning in FIELDS.items()}
    assert described == expected


def test_errors() -> None:
    """Every code of the core is there, with the status and the code that Placement shows."""
    described = {
        code: cells[:2] for code, cells in rows((REFERENCE / "errors.md").read_text()).items()
    }
    expected = {
        str(code): [str(outcome.status), f"`{outcome.code}`"] for code, outcome in OUTCOMES.items()
    }
    assert set(expected) == {str(code) for code in Code}
    assert described == expected


def test_only_tables_count() -> None:
    """A mention in a sentence is no documentation."""
    text = "`listen` is a setting.\n\n| `auth` | `token` | Who. |\n"
    assert rows(text) == {"auth": ["`token`", "Who."]}
