"""Parses query strings as Go's `net/url` does.

Source: its documentation. Pairs with a semicolon or a broken escape are silently ignored, `+` is a
blank, and the first of repeated values counts.
"""

import re
from functools import partial
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from moorage.core.limits import BOSKOS_PARAMETERS_MAX
from moorage.faces.web import RefusalError

_BROKEN = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class Arguments(dict[str, str]):
    """The arguments of a request by name; those that are absent are empty."""

    def __missing__(self, name: str) -> str:
        return ""


def query_values(query_string: bytes) -> Arguments:
    """Return the first value of every name.

    Bytes that are not UTF-8 become surrogates, so that they can be written back unchanged.

    Raises:
        RefusalError: 400, there are more than `BOSKOS_PARAMETERS_MAX`.
    """
    if query_string.count(b"&") >= BOSKOS_PARAMETERS_MAX:
        raise RefusalError(
            HTTPStatus.BAD_REQUEST, f"more than {BOSKOS_PARAMETERS_MAX} query parameters are given"
        )
    values = Arguments()
    text = _text if b"%" in query_string or b"+" in query_string else _plain_text
    for pair in query_string.split(b"&"):
        if not pair or b";" in pair or _BROKEN.search(pair):
            continue
        name, _, value = pair.partition(b"=")
        values.setdefault(text(name), text(value))
    return values


_plain_text = partial(str, encoding="utf-8", errors="surrogateescape")


def _text(raw: bytes) -> str:
    return _plain_text(unquote_to_bytes(raw.replace(b"+", b" ")))
