"""Exports: what a page shows as a file, JSON as the native API has it, or a table as CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from moorage.faces.dashboard.routing import Answer


def json_of(answer: Any, filename: str) -> Answer:
    """Return a value of the native API as a file."""
    return Answer(msgspec.json.encode(answer), "application/json", filename)


FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet would run a cell that begins with one of these."""


def csv_of(columns: Sequence[str], rows: Iterable[Iterable[object]], filename: str) -> Answer:
    """Return a table as a file; no cell is a formula."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return Answer(text.getvalue().encode(), "text/csv; charset=utf-8", filename)


def _cell(value: object) -> object:
    if value is None:
        return ""
    text = value.isoformat() if isinstance(value, datetime) else value
    return f"'{text}" if isinstance(text, str) and text.startswith(FORMULAS) else text
