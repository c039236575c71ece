"""Valid bodies with one change, in every place."""

from collections.abc import Iterator
from typing import Any

VALUES: tuple[Any, ...] = (None, True, 0, -1, 4.0, 4.5, 2**31, 1e39, "", "x", "X" * 256, [], {})
"""Values for each place: every type, and both sides of every bound."""

NAMES = ("", "extra", "EXTRA", "a" * 36)
"""Names of members that are added to each object."""


def mutations(value: Any) -> Iterator[Any]:
    """Yield a body with one change: another value, a member removed, added or repeated."""
    yield from VALUES
    parts = value if isinstance(value, dict) else dict(enumerate(value))
    for key, part in parts.items():
        inner = mutations(part) if isinstance(part, dict | list) else VALUES
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
