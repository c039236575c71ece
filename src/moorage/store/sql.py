"""Reads the statements of an engine by the names of their blocks in `queries/`.

`queries/common/` has those that all engines share, `queries/<engine>/` the others. Common ones are
written as PostgreSQL reads them: parameters as `$1`, types as `::text` where it cannot infer them.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

_BLOCK = re.compile(r"^-- name: (?P<name>\w+) --$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*$", re.MULTILINE)
_TYPE = re.compile(r"::\w+")
_PARAMETER = re.compile(r"\$(?=[0-9])")
_COLUMNS = re.compile(r"INSERT INTO \w+ \((?P<names>[^)]+)\)")


@cache
def blocks(engine: str) -> dict[str, str]:
    """Return every statement of an engine (`sqlite`, `postgres`), by block name.

    Raises:
        ValueError: two blocks have the same name, or a block is not exactly one statement.
    """
    found: dict[str, str] = {}
    for folder in ("common", engine):
        for name, text in written(folder):
            if name in found:
                raise ValueError(f"block {name} stands twice in the queries of {engine}")
            if text.count(";") != 1:
                raise ValueError(f"block {name} of {engine} must be one statement")
            found[name] = translated(text) if (folder, engine) == ("common", "sqlite") else text
    return found


@cache
def columns(block: str) -> tuple[str, ...]:
    """Return the columns of an INSERT, in the order of its rows; they are the same on all engines.

    Raises:
        ValueError: the block is not an INSERT with named columns.
    """
    found = _COLUMNS.match(blocks("sqlite")[block])
    if found is None:
        raise ValueError(f"block {block} does not name the columns that it fills")
    return tuple(name.strip() for name in found["names"].split(","))


def written(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the blocks in a folder of `queries/`."""
    for file in sorted(files(__package__).joinpath("queries", folder).iterdir(), key=str):
        yield from _split(file.read_text(encoding="utf-8"))


def translated(text: str) -> str:
    """Return a common statement as SQLite reads it: parameters as `?1`, without types."""
    return _PARAMETER.sub("?", _TYPE.sub("", text))


def _split(text: str) -> list[tuple[str, str]]:
    parts = _BLOCK.split(text)
    return [
        (name, _COMMENT.sub("", body).strip())
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    ]
