"""Tables as CSV and JSON: the rows of a page, in the form of the native API."""

import csv
import dataclasses
import io
from collections.abc import Sequence
from typing import Any

import msgspec

from moorage.faces.dashboard.routing import Answer, PageRequest

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets take a text that begins with one of these for a formula."""


def exported(
    request: PageRequest,
    name: str,
    kind: type,
    rows: Sequence[Any],
    following: str | None,
    as_of: str | None = None,
) -> Answer:
    """Return rows as CSV or JSON, whichever the address asks for.

    Args:
        request: its path ends with `.csv` or `.json`.
        name: of the file.
        kind: the type of the rows, one of `wire`: its fields are the columns.
        rows: all that follow from the cursor on, at most as many as one export has.
        following: the cursor of what comes after these rows; None: nothing.
        as_of: the revision of all rows, if they are of one.
    """
    plain = [msgspec.to_builtins(row) for row in rows]
    revision = {} if as_of is None else {"as_of": as_of}
    if request.path.endswith(".json"):
        body = msgspec.json.encode({name: plain, "next": following, **revision})
        return Answer(msgspec.json.format(body), "application/json", f"{name}.json")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    plain = [{**row, **revision} for row in plain]
    columns = [one.name for one in dataclasses.fields(kind)]
    writer.writerow([*columns, *revision])
    for row in plain:
        writer.writerow([_cell(row[name]) for name in (*columns, *revision)])
    return Answer(text.getvalue().encode(), "text/csv; charset=utf-8", f"{name}.csv")


def _cell(value: Any) -> str:
    """Return a value as one cell; what a spreadsheet would execute gets an apostrophe before it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    return msgspec.json.encode(value).decode()
