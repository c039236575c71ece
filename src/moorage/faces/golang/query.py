"""Parses query strings as Go's `net/url` does.

Source: its documentation. Pairs with a semicolon or a broken escape are silently ignored, `+` is a
blank, and the first of repeated values counts.
"""

import re
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from moorage.core.limits import BOSKOS_PARAMETERS_MAX
from moorage.faces.web import RefusalError

_BROKEN = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def query_values(query_string: bytes) -> dict[str, str]:
    """Return the first value of every name.

    Bytes that are not UTF-8 become surrogates, so that they can be written back unchanged.

    Raises:
        RefusalError: 400, there are more than `BOSKOS_PARAMETERS_MAX`.
    """
    if query_string.count(b"&") >= BOSKOS_PARAMETERS_MAX:
        raise RefusalError(
            HTTPStatus.BAD_REQUEST, f"more than {BOSKOS_PARAMETERS_MAX} query parameters are given"
        )
    values: dict[str, str] = {}
    for pair in query_string.split(b"&"):
        if not pair or b";" in pair or _BROKEN.search(pair):
            continue
        name, _, value = pair.partition(b"=")
        values.setdefault(_text(name), _text(value))
    return values


def _text(raw: bytes) -> str:
    return unquote_to_bytes(raw.replace(b"+", b" ")).decode("utf-8", "surrogateescape")
