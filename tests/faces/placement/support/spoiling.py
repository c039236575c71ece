"""Good bodies with one thing wrong, or at least different, in every place."""

from collections.abc import Iterator
from typing import Any

VALUES: tuple[Any, ...] = (None, True, 0, -1, 4.0, 4.5, 2**31, 1e39, "", "x", "X" * 256, [], {})
"""What is put into each place: every type, and both sides of every bound."""

NAMES = ("", "extra", "EXTRA", "a" * 36)
"""Members that are added to each object."""


def spoilt(value: Any) -> Iterator[Any]:
    """Yield a body changed in one place: another value, one member less, one more, one twice."""
    yield from VALUES
    parts = value if isinstance(value, dict) else dict(enumerate(value))
    for key, part in parts.items():
        inner = spoilt(part) if isinstance(part, dict | list) else VALUES
        changed: list[dict[Any, Any]] = [{**parts, key: each} for each in inner]
        changed.append({other: each for other, each in parts.items() if other != key})
        for each in changed:
            yield each if isinstance(value, dict) else list(each.values())
    if isinstance(value, dict):
        for name in NAMES:
            for part in (1, next(iter(parts.values()))):
                yield {**value, name: part}
    else:
        yield value * 2
