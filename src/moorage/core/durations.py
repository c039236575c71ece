"""Durations in the text form of Go (`1h30m`, `1.5s`), which files and clients of Boskos use.

Source: the documentation of `time.ParseDuration`; the error messages are Go's own.
"""

import re

from moorage.core.limits import DURATION_LENGTH_MAX

NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}

END = 1 << 63
"""Nanoseconds: one more than the longest duration, and the size of the longest negative one."""

_NUMBER = re.compile(r"([0-9]*)(?:\.([0-9]*))?")
_UNIT = re.compile(r"[^0-9.]*")

_DIGITS_MAX = 19
"""A number with more digits is larger than `END`."""


class DurationError(ValueError):
    """A text is not a duration; the message is Go's."""


def parse(text: str) -> int:
    """Return a duration in nanoseconds, truncated.

    Raises:
        DurationError: the text is not a duration.
    """
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest or len(text) > DURATION_LENGTH_MAX:
        raise _invalid(text)
    total = 0
    while rest:
        part, rest = _part(text, rest)
        total += part
        if total > END or (total == END and not rest and not negative):
            raise _invalid(text)
    return -total if negative else total


def _part(text: str, rest: str) -> tuple[int, str]:
    """Take the first number with its unit; return its nanoseconds and what follows it."""
    found = _NUMBER.match(rest)
    assert found is not None  # the pattern also matches the empty string
    digits, fraction = (found[1] or "").lstrip("0"), found[2] or ""
    whole = int(digits or 0) if len(digits) <= _DIGITS_MAX else END + 1
    if not (found[1] or fraction) or whole > END:
        raise _invalid(text)
    rest = rest[found.end() :]
    unit = _UNIT.match(rest)
    assert unit is not None  # likewise
    if not unit[0]:
        raise DurationError(f"time: missing unit in duration {_quoted(text)}")
    if unit[0] not in NANOSECONDS:
        raise DurationError(f"time: unknown unit {_quoted(unit[0])} in duration {_quoted(text)}")
    size = NANOSECONDS[unit[0]]
    if whole > END // size:
        raise _invalid(text)
    return whole * size + _of_fraction(fraction, size), rest[unit.end() :]


def _of_fraction(digits: str, size: int) -> int:
    """Return a fraction of a unit, from the digits that Go reads, rounded like a double."""
    number, scale = 0, 1.0
    for digit in digits[:_DIGITS_MAX]:
        if number > (END - 1) // 10:
            break
        number, scale = number * 10 + int(digit), scale * 10.0
    return int(float(number) * (float(size) / scale))


def _invalid(text: str) -> DurationError:
    return DurationError(f"time: invalid duration {_quoted(text)}")


def _quoted(text: str) -> str:
    """Quote as Go's package `time` does: control and non-ASCII bytes in hexadecimal."""
    shown = []
    for character in text:
        if character in '"\\':
            shown.append("\\" + character)
        elif " " <= character <= "\x7f":
            shown.append(character)
        else:
            shown += [f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape")]
    return '"' + "".join(shown) + '"'
