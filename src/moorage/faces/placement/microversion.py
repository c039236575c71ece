"""Negotiates the microversion of a request. Versions are kept as minor numbers: 1.28 is 28.

Source: Placement API reference, "Microversions"; the header is OpenStack's common one.
"""

import re
from functools import lru_cache

from moorage.faces.query_strings.refusals import ProblemError

SERVICE = "placement"
HEADER = "openstack-api-version"
LOWEST = 0
LATEST = 39
LOWEST_TEXT = f"1.{LOWEST}"
LATEST_TEXT = f"1.{LATEST}"

_VERSION = re.compile(r"(-?[0-9]+)\.(-?[0-9]+)")


@lru_cache(maxsize=256)
def negotiate(header: str) -> int:
    """Return the minor version that a header asks for; 0 if it names other services only.

    Args:
        header: the value of `openstack-api-version`; several are joined with commas.

    Raises:
        ProblemError: 400 if it cannot be parsed, 406 if there is no such version.
    """
    text = _asked(header)
    if text == "latest":
        return LATEST
    major, minor = _numbers(text)
    if major != 1 or not LOWEST <= minor <= LATEST:
        raise ProblemError(
            406,
            f"Invalid microversion: Unacceptable version header: {text}",
            members={"max_version": LATEST_TEXT, "min_version": LOWEST_TEXT},
        )
    return minor


def _numbers(text: str) -> tuple[int, int]:
    """Return major and minor; for an invalid number the message is Python's."""
    try:
        numbers = [int(part) for part in text.split(".", 1)]
        fault = f"expected two numbers and a dot, such as {LATEST_TEXT}"
    except ValueError as error:
        fault = str(error)
    else:
        if _VERSION.fullmatch(text):
            return numbers[0], numbers[1]
    raise ProblemError(400, f"Invalid microversion: invalid version string: {text}; {fault}")


def _asked(header: str) -> str:
    """Return the version named last for this service."""
    asked = LOWEST_TEXT
    for entry in header.split(","):
        words = entry.split(None, 1)
        if len(words) > 1 and words[0].lower() == SERVICE:
            asked = words[1].strip()
    return asked
