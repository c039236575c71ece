"""Compares answers of a server with those that were recorded."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("recorded.json")
MISSING = "(missing)"


@dataclass(frozen=True)
class Known:
    """Differences that stay. `steps` and `way` are patterns, of the step's name and of the path."""

    steps: str
    way: str
    why: str

    def concerns(self, step: str, way: str) -> bool:
        """Return whether a difference is one of these."""
        return fnmatchcase(step, self.steps) and fnmatchcase(way, self.way)


def recorded() -> dict[str, Any]:
    """Return the answers of a real server by the names of the steps."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


def record(answers: dict[str, Any]) -> None:
    """Store the answers of a real server."""
    RECORDED.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")


def differences(right: dict[str, Any], found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield where answers differ from the right ones: step, path, and both values."""
    for step in [*right, *(name for name in found if name not in right)]:
        before, after = right.get(step, MISSING), found.get(step, MISSING)
        for way, one, other in _leaves(before, after, ""):
            yield step, way, f"{json.dumps(one)} is right, answered was {json.dumps(other)}"


def _leaves(right: Any, found: Any, way: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(right, dict) and isinstance(found, dict):
        for name in sorted({*right, *found}):
            below = f"{way}/{name}"
            yield from _leaves(right.get(name, MISSING), found.get(name, MISSING), below)
    elif isinstance(right, list) and isinstance(found, list) and len(right) == len(found):
        for place, (one, other) in enumerate(zip(right, found, strict=True)):
            yield from _leaves(one, other, f"{way}/{place}")
    elif right != found or type(right) is not type(found):
        yield way, right, found


def problems(
    right: dict[str, Any], found: dict[str, Any], known: Iterable[Known] = ()
) -> list[str]:
    """Return what is not as it should be: unknown differences, and known ones that are gone."""
    every, seen, lines = [*known], set[Known](), []
    for step, way, text in differences(right, found):
        reasons = {one for one in every if one.concerns(step, way)}
        seen |= reasons
        if not reasons:
            lines.append(f"{step}: {way}: {text}")
    gone = (one for one in every if one not in seen)
    return [*lines, *(f"{one.steps}: {one.way}: does not differ any more" for one in gone)]
