"""Which microversion a request speaks. Versions are kept as their minor number: 1.28 is 28.

Source: Placement API reference, "Microversions"; the header is OpenStack's common one.
"""

import re
from functools import lru_cache

from moorage.faces.placement.problems import ProblemError

SERVICE = "placement"
HEADER = "openstack-api-version"
LOWEST = 0
LATEST = 39
LOWEST_TEXT = f"1.{LOWEST}"
LATEST_TEXT = f"1.{LATEST}"

_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")


@lru_cache(maxsize=256)
def negotiate(header: str) -> int:
    """Return the minor version that a header asks for; 0 when it names other services only.

    Args:
        header: the value of `openstack-api-version`; several are joined with commas.

    Raises:
        ProblemError: 400 when it cannot be read, 406 when there is no such version.
    """
    text = _asked(header)
    if text == "latest":
        return LATEST
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ProblemError(
            400, f"Invalid microversion: invalid version string: {text}; {_fault(text)}"
        )
    major, minor = int(found[1]), int(found[2])
    if major != 1 or minor > LATEST:
        raise ProblemError(
            406,
            f"Invalid microversion: Unacceptable version header: {text}",
            members={"max_version": LATEST_TEXT, "min_version": LOWEST_TEXT},
        )
    return minor


def _fault(text: str) -> str:
    """Say why a text is no version; of what is no number, as Python says it."""
    try:
        for part in text.split(".", 1):
            int(part)
    except ValueError as error:
        return str(error)
    return f"it is not written as {LATEST_TEXT} is"


def _asked(header: str) -> str:
    """Return the version named last for this service."""
    asked = LOWEST_TEXT
    for entry in header.split(","):
        words = entry.split(None, 1)
        if len(words) > 1 and words[0].lower() == SERVICE:
            asked = words[1].strip()
    return asked
