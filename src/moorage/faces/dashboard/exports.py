"""Tables as CSV and JSON: the rows of a page, in the form of the native API."""

import asyncio
import csv
import dataclasses
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from moorage.faces.dashboard.routing import Answer, PageRequest
from moorage.wire.dataclass import member, members

_HIDDEN = (
    r'["\x00-\x08\x0b\x0c\x0e-\x20\x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f'
    r"\u205f-\u206f\u3000\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Quotes, blanks and what is invisible; not what divides cells, so that texts are read once."""

_FORMULA = re.compile(rf"((?:^|[;|\t\r\n]){_HIDDEN}*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""Where a spreadsheet takes a text for a formula: it begins with one of these signs, in Japanese
also with a wide one. Blanks, quotes and invisible letters before it are ignored, and some readers
divide cells at `;`, `|`, tabs and ends of lines. Source: OWASP, CSV Injection."""

_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks that let a text be read in another order than it is written, and reorder other cells."""

_FORMULA_IN_JSON = re.compile(_FORMULA.pattern.replace("(?=", "(").replace("^|", ""))
"""JSON of objects and lists never begins with a sign, and has `;` and `|` in texts only."""


async def exported(
    request: PageRequest,
    name: str,
    kind: type,
    rows: Sequence[Any],
    following: str | None,
    as_of: str | None = None,
    *,
    complete: bool = True,
) -> Answer:
    """Return rows as CSV or JSON, whichever the address asks for, made in a thread.

    Args:
        request: its path ends with `.csv` or `.json`.
        name: of the file.
        kind: the type of the rows, one of `wire`: its fields are the columns.
        rows: all that follow from the cursor on, at most as many as one export has.
        following: the cursor of what comes after these rows; None: nothing.
        as_of: the revision of all rows, if they are of one.
        complete: False if there are more rows although there is no cursor.

    The name of an incomplete file says so, because a table cannot.
    """
    complete = complete and following is None
    filename = name if complete else f"{name}-part"
    revision = {} if as_of is None else {"as_of": as_of}
    if request.path.endswith(".json"):
        rest = {"next": following, "complete": complete, **revision}
        body = await asyncio.to_thread(_json, name, kind, rows, rest)
        return Answer(body, "application/json", f"{filename}.json")
    body = await asyncio.to_thread(_csv, kind, rows, revision)
    return Answer(body, "text/csv; charset=utf-8", f"{filename}.csv")


def _json(name: str, kind: type, rows: Sequence[Any], rest: Mapping[str, Any]) -> bytes:
    answer = {name: _as_in_json(kind, rows), **rest}
    return msgspec.json.format(msgspec.json.encode(answer))


def _as_in_json(kind: type, rows: Sequence[Any]) -> Sequence[Any]:
    """Return rows whose members have their names in JSON: few types have others."""
    if any(member(one.name) != one.name for one in dataclasses.fields(kind)):
        return [members(one) for one in rows]
    return rows


def _csv(kind: type, rows: Sequence[Any], more: Mapping[str, str]) -> bytes:
    """Return rows with a header; `more` are columns with the same value in each row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    columns = [member(one.name) for one in dataclasses.fields(kind)]
    writer.writerow([*columns, *more])
    for row in _as_in_json(kind, rows):
        plain = msgspec.to_builtins(row)
        writer.writerow([*(_cell(plain[name]) for name in columns), *more.values()])
    return text.getvalue().encode()


def _cell(value: Any) -> str:
    """Return a value as one cell; what a spreadsheet would execute gets an apostrophe before it.

    Marks of the direction of text are escaped, as on terminals. Within JSON the sign itself is
    escaped, too, so that the value stays the same.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return _DIRECTION.sub(_escaped, _FORMULA.sub(r"\1'", value))
    text = msgspec.json.encode(value).decode()
    if isinstance(value, int | float):
        return text
    text = _FORMULA_IN_JSON.sub(lambda found: f"{found[1]}\\u{ord(found[2]):04x}", text)
    return _DIRECTION.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
