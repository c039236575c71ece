"""Documents that people or programs write: JSON, or YAML if the name of the file says so."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from moorage.cli.support.output import FAILED, USAGE, Failure
from moorage.cli.support.pool_files import YAML_ENDINGS, reason_of, yaml_read

T = TypeVar("T")

STREAM = "-"
"""The name of a file that is standard input, or standard output."""


def read(path: str, what: str, parse: Callable[[Any], T]) -> T:
    """Return what a file has; `-` is standard input. Raises Failure: 2.

    `parse` raises ValueError if the document is not what it should be; `what` is its name in
    messages.
    """
    try:
        text = sys.stdin.read() if path == STREAM else Path(path).read_text(encoding="utf-8")
        return parse(yaml_read(text) if path.endswith(YAML_ENDINGS) else json_read(text))
    except (OSError, ValueError, RecursionError) as error:
        raise Failure(USAGE, f"cannot read {what} in {path}: {reason_of(error)}") from None


def json_read(text: str) -> Any:
    """Parse JSON. Raises ValueError, also for a repeated key, of which `json` takes the last."""
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"'{name}' is defined twice")
        found[name] = value
    return found


def write(path: str, document: Any) -> None:
    """Write JSON to a file; `-` is standard output. Raises Failure: 1."""
    text = json.dumps(document, indent=2) + "\n"
    if path == STREAM:
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(FAILED, f"cannot write {path}: {error.strerror}") from None
