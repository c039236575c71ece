"""The range of keys that have a prefix, for the index of owners and keys."""

from moorage.core.errors import Code, Error
from moorage.core.limits import KEY_LENGTH_MAX
from moorage.core.texts import check_plain

LAST = "\U0010ffff"
"""The last code point. Both engines compare keys by code points."""

BEFORE_SURROGATES, AFTER_SURROGATES = "\ud7ff", "\ue000"
"""Code points in between are not characters."""


def keys_with(prefix: str, owner: str | None) -> tuple[str, str]:
    """Return the first key with a prefix, and the least key after all of them.

    Raises INVALID: there is no owner, for whom the index is read, or the prefix cannot be one.
    """
    if owner is None:
        raise Error(Code.INVALID, "key_prefix needs an owner, whose keys they are: ?owner=NAME.")
    if not 1 <= len(prefix) <= KEY_LENGTH_MAX:
        raise Error(Code.INVALID, f"key_prefix must have 1 to {KEY_LENGTH_MAX} characters.")
    check_plain("key_prefix", prefix)
    head = prefix.rstrip(LAST)
    if not head:
        raise Error(Code.INVALID, "key_prefix must have a character before U+10FFFF.")
    last = head[-1]
    return prefix, head[:-1] + (
        AFTER_SURROGATES if last == BEFORE_SURROGATES else chr(ord(last) + 1)
    )
