"""No cell of a CSV export is a formula, however a spreadsheet divides the file."""

import csv
import io
import json
import re
from random import Random
from typing import Any

import pytest

from moorage.faces.dashboard.exports import _csv
from moorage.wire.audit import AuditEntry

SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
BLANK = re.compile('[\\s"\x00-\x1f\x7f-\xa0\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*')
PIECES = (
    *(";", "|", "\t", "\r", "\n", "\r\n", ",", " ", '"', '""', "'", "x", "1", "\\", ":", "{", "]"),
    *("\xa0", "\u3000", "\u200b", "\ufeff", "\u202e", "\x00", "\x0b", "\u2028", "\U000e0041"),
    *SIGNS,
)


def entry(text: str, before: Any) -> AuditEntry:
    """Return a row with a text from outside, and a value from outside."""
    words: dict[str, Any] = dict.fromkeys(AuditEntry.__dataclass_fields__)
    return AuditEntry(**words | {"target": text, "before": before})


def cells(file: str) -> set[str]:
    """Return all cells of a file as readers divide it, with and without regard to quotes."""
    found: set[str] = set()
    for delimiter in ",;\t|":
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
            if quoting == csv.QUOTE_NONE and delimiter == ",":
                continue  # who divides at commas reads quotes
            lines = io.StringIO(file, newline="")
            rows = csv.reader(lines, delimiter=delimiter, quoting=quoting)
            found.update(cell for row in rows for cell in row)
    return found


def is_formula(cell: str) -> bool:
    """Return whether a spreadsheet would execute a cell."""
    rest = cell[BLANK.match(cell).end() :]  # type: ignore[union-attr] # it matches nothing, too
    return rest[:1] in [*SIGNS]


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", " =1+1", "\t=1", "\r\n=1", '"=1', ' ""=1', "\u3000@x", "\ufeff-1", "\u202e=1"),
        *("n1;=1+1;x", "n1; =1", 'n1;"=1', "a\t+1", "a|@x", "a\r-1", "a;\u200b\uff1d1", ";;=1"),
    ],
)
def test_formulas_get_an_apostrophe(text: str) -> None:
    """Before the sign; the rest is as it was."""
    file = _csv(AuditEntry, [entry(text, {"a": text})], {}).decode()
    row = next(csv.DictReader(io.StringIO(file, newline="")))
    assert row["target"].replace("'", "") == text.replace("\u202e", r"\u202e")
    assert json.loads(row["before"]) == {"a": text}, "JSON has the same value"
    assert not any(is_formula(cell) for cell in cells(file))


def test_marks_of_direction_are_escaped() -> None:
    """They would reorder what people read; in JSON the value stays the same."""
    text = "host-\u202e1+1=\u202c\u2066x\u2069\u200f\u061c é 日本"
    file = _csv(AuditEntry, [entry(text, [text])], {}).decode()
    row = next(csv.DictReader(io.StringIO(file, newline="")))
    assert row["target"] == r"host-\u202e1+1=\u202c\u2066x\u2069\u200f\u061c é 日本"
    assert json.loads(row["before"]) == [text]
    assert not set("\u202e\u202c\u2066\u2069\u200f\u061c") & set(file)


def test_harmless_texts_stay() -> None:
    """A sign within a text is nothing to a spreadsheet."""
    for text in ("a=b", "a-b; c", "x, -y", "2026-11-28T03:00:00Z", "job=1;b=2", "", "'=1"):
        file = _csv(AuditEntry, [entry(text, -5)], {}).decode()
        row = next(csv.DictReader(io.StringIO(file, newline="")))
        assert (row["target"], row["before"]) == (text, "-5")


def test_random_texts() -> None:
    """Of 5,000 none becomes a formula, and JSON keeps its values; without the rule most do."""
    chance, found = Random(4), 0
    for _ in range(5_000):
        text = "".join(chance.choices(PIECES, k=chance.randrange(1, 9)))
        file = _csv(AuditEntry, [entry(text, [text, {text: text}])], {}).decode()
        assert not any(is_formula(cell) for cell in cells(file)), repr(text)
        rows = csv.DictReader(io.StringIO(file, newline=""))
        assert json.loads(next(rows)["before"]) == [text, {text: text}]
        found += any(is_formula(cell) for cell in cells(f"{text},x\r\n"))
    assert found > 1_000


def test_long_texts_are_read_once() -> None:
    """Separators and blanks without end take no time that grows with their square."""
    for text in ("\t" * 200_000, "; " * 200_000, " " * 400_000, ';"' * 200_000):
        assert _csv(AuditEntry, [entry(text, [text])], {})
