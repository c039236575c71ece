"""The path prefix that proxies put before the addresses of this server, such as `/placement`."""

import re

from moorage.config import ConfigError

PREFIX_BYTES_MAX = 200
"""Bytes of a prefix: it is part of every address in an answer."""

_SEGMENTS = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_DOTS = re.compile(r"/\.\.?(?:/|\Z)")


def prefix_of(text: str) -> str | None:
    """Return a prefix without its last slash, empty for none; None: this is not a prefix.

    Only characters that no client needs to escape are permitted (RFC 3986, 2.3), so that a prefix
    has one spelling, and can be neither another host (`//evil`) nor the end of a header.
    """
    kept = text.removesuffix("/")
    if not kept:
        return ""
    if len(kept) > PREFIX_BYTES_MAX or not _SEGMENTS.fullmatch(kept) or _DOTS.search(kept):
        return None
    return kept


def prefix_parse(text: str | None) -> str:
    """Return the prefix in the setting `path_prefix`. Raises ConfigError."""
    found = prefix_of(text or "")
    if found is None:
        raise ConfigError(
            f"path_prefix: {text!r} must be a path such as /placement: segments of letters, digits"
            f" and ._~- after a slash each, at most {PREFIX_BYTES_MAX} bytes, without . and .."
        )
    return found
