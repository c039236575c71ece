"""The report of an import: what was read, and every oddity, as JSON and as text."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from moorage.client.run.clock import instant
from moorage.client.run.printing import printable, printable_json
from moorage.integrations.placement.oddities import KINDS, choices_text
from moorage.integrations.placement.reading import Reading
from moorage.integrations.placement.schemas import HEADS


class Report:
    """Two files, NAME.json and NAME.txt, which each reading replaces."""

    def __init__(self, name: str, source: str) -> None:
        self.json = Path(f"{name}.json")
        self.text = Path(f"{name}.txt")
        self._source = source

    def write(self, reading: Reading) -> None:
        """Write both files. Raises OSError."""
        described = described_reading(reading, self._source)
        text = json.dumps(described, indent=2, ensure_ascii=False)
        _replace(self.json, printable_json(text) + "\n")
        _replace(self.text, "".join(f"{printable(line)}\n" for line in _lines(described)))


def described_reading(reading: Reading, source: str) -> dict[str, Any]:
    """Return what a report says, as plain values."""
    return {
        "source": source,
        "schema": reading.schema,
        "read_at": instant(),
        "rows": reading.rows.counts(),
        "oddities": [
            {
                "code": code,
                "meaning": KINDS[code].meaning,
                "fate": str(found.fate),
                "choices": choices_text(code),
                "count": found.count,
                "which": found.named,
            }
            for code, found in sorted(reading.oddities.found.items())
        ],
    }


def _lines(described: dict[str, Any]) -> Iterator[str]:
    release = HEADS.get(described["schema"])
    yield f"Read from {described['source']} at {described['read_at']}"
    yield f"Schema: {described['schema']}" + (f", Placement {release}" if release else "")
    yield "Rows: " + ", ".join(f"{count} {kind}" for kind, count in described["rows"].items())
    if not described["oddities"]:
        yield "Nothing is odd."
    for one in described["oddities"]:
        yield ""
        yield f"{one['code']}: {one['count']}, {one['fate']}"
        yield f"  {one['meaning']}"
        if one["choices"]:
            yield f"  {one['choices']}"
        for what in one["which"]:
            yield f"  - {what}"
        if one["count"] > len(one["which"]):
            yield f"  - and {one['count'] - len(one['which'])} more"


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole, readable for its owner only: it has names and projects."""
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(number, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    partial.replace(path)
