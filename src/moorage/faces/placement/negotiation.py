"""Negotiates the media type of an answer. Source: RFC 9110, section 12.5.1, "Accept"."""

import re
from functools import lru_cache

JSON = "application/json"
HTML = "text/html"
TEXT = "text/plain"

RANGES_MAX = 100
"""Ranges of an Accept header that are read: each takes microseconds; no client sends more."""

_ANY = "*/*"

_WEIGHT = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")
_EXACT, _SUBTYPES, _ANYTHING = 3, 2, 1


@lru_cache(maxsize=256)
def accepts_json(accept: str) -> bool:
    """Return whether an Accept header admits JSON; an absent, empty or invalid one does."""
    return _quality(accept, JSON) > 0


@lru_cache(maxsize=256)
def error_type(accept: str) -> str:
    """Return the media type of an error body: HTML or JSON, otherwise plain text.

    If both are equally acceptable it is HTML; without a preference it is JSON.
    """
    accept = accept_shown(accept)
    best = max((HTML, JSON), key=lambda offer: _quality(accept, offer))
    return best if _quality(accept, best) > 0 else TEXT


def accept_shown(accept: str) -> str:
    """Return the effective Accept header: an empty one, and `*/*` alone, mean JSON."""
    return JSON if accept in ("", _ANY) else accept


def _quality(accept: str, offer: str) -> float:
    """Return the quality of an offer, from 0 to 1, by the most specific range that matches."""
    parts = accept.split(",", RANGES_MAX)[:RANGES_MAX]
    ranges = [part for part in parts if part.strip()]
    if not ranges:
        return 1.0
    found = (0, 0.0)
    for part in ranges:
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        fit = _fit(name, offer)
        weight = _weight(parameters)
        if "/" not in name or weight is None:
            return 1.0
        if fit and all(piece.startswith("q=") for piece in parameters):
            found = max(found, (fit, weight))
    return found[1]


def _fit(name: str, offer: str) -> int:
    if name == offer:
        return _EXACT
    if name == offer.split("/")[0] + "/*":
        return _SUBTYPES
    return _ANYTHING if name == _ANY else 0


def _weight(parameters: list[str]) -> float | None:
    """Return the weight of a range; None if it is invalid."""
    if not parameters or not parameters[-1].startswith("q="):
        return 1.0
    found = _WEIGHT.fullmatch(parameters[-1], 2)
    return float(found[0]) if found else None
