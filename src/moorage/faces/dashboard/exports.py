"""Tables as CSV and JSON: the rows of a page, in the form of the native API."""

import asyncio
import csv
import io
from collections.abc import Sequence
from typing import Any

import msgspec

from moorage.faces.dashboard.routing import Answer, PageRequest

FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Spreadsheets take a text that begins with one of these for a formula; in Japanese also with the
wide ones. They ignore blanks before it. Source: OWASP, CSV Injection."""


async def exported(
    request: PageRequest,
    name: str,
    rows: Sequence[Any],
    following: str | None,
    as_of: str | None = None,
) -> Answer:
    """Return rows as CSV or JSON, whichever the address asks for, made in a thread.

    Args:
        request: its path ends with `.csv` or `.json`.
        name: of the file.
        rows: values of `wire`, all of one type.
        following: the cursor of what comes after these rows; None: nothing.
        as_of: the revision of all rows, if they are of one.
    """
    return await asyncio.to_thread(_made, request, name, rows, following, as_of)


def _made(
    request: PageRequest, name: str, rows: Sequence[Any], following: str | None, as_of: str | None
) -> Answer:
    plain = [msgspec.to_builtins(row) for row in rows]
    revision = {} if as_of is None else {"as_of": as_of}
    if request.path.endswith(".json"):
        body = msgspec.json.encode({name: plain, "next": following, **revision})
        return Answer(msgspec.json.format(body), "application/json", f"{name}.json")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    plain = [{**row, **revision} for row in plain]
    if plain:
        writer.writerow(plain[0])
    for row in plain:
        writer.writerow([_cell(value) for value in row.values()])
    return Answer(text.getvalue().encode(), "text/csv; charset=utf-8", f"{name}.csv")


def _cell(value: Any) -> str:
    """Return a value as one cell; what a spreadsheet would execute gets an apostrophe before it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.lstrip().startswith(FORMULA) else value
    return msgspec.json.encode(value).decode()
