"""The UUIDs that Placement accepts: bodies are lenient, query strings require the dashes."""

import re
from uuid import UUID

from moorage.core.ids import is_normal
from moorage.core.limits import UUID_LENGTH_MAX

_USUAL = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_UNUSUAL = "[{}]*(?:(?:urn:(?:uuid:)?|uuid:)[{}]*)?(?:-*[0-9a-fA-F]){32}-*[{}]*"

UUID_PATTERN = rf"^(?:{_USUAL}|{_UNUSUAL})\Z"
"""A UUID in a body: with or without dashes, braces, `urn:uuid:`, in any case. The usual form is
first because it matches six times as fast. No part can begin where the previous one could continue:
otherwise matching would take quadratic time and block the process."""

_LENIENT = re.compile(UUID_PATTERN)


def uuid_normal(text: str) -> str | None:
    """Return a UUID in lower case with dashes; None if the text is not a UUID."""
    if is_normal(text):
        return text
    if len(text) > UUID_LENGTH_MAX or not _LENIENT.match(text):
        return None
    plain = text.replace("urn:", "").replace("uuid:", "")
    return str(UUID(plain.strip("{}").replace("-", "")))


def is_dashed(text: str) -> bool:
    """Return whether it is a UUID with its dashes in place, in any case."""
    return is_normal(text.lower())
