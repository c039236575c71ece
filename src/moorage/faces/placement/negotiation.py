"""Which media type an answer may have. Source: RFC 9110, section 12.5.1, "Accept"."""

from functools import lru_cache

JSON = "application/json"
HTML = "text/html"
TEXT = "text/plain"

_EXACT, _SUBTYPES, _ANYTHING = 3, 2, 1


@lru_cache(maxsize=256)
def accepts_json(accept: str) -> bool:
    """Does this Accept header admit JSON? An absent, empty or unreadable one admits anything."""
    return _quality(accept, JSON) > 0


@lru_cache(maxsize=256)
def error_type(accept: str) -> str:
    """Return the media type of an error body: JSON unless HTML is preferred, else plain text."""
    best = max((JSON, HTML), key=lambda offer: _quality(accept, offer))
    return best if _quality(accept, best) > 0 else TEXT


def _quality(accept: str, offer: str) -> float:
    """Return how much an offer is wanted, from 0 to 1, by the most specific range that fits."""
    ranges = [part for part in accept.split(",") if part.strip()]
    if not ranges:
        return 1.0
    found = (0, 0.0)
    for part in ranges:
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        fit = _fit(name, offer)
        if fit and all(piece.startswith("q=") for piece in parameters):
            found = max(found, (fit, _weight(parameters)))
        elif "/" not in name:
            return 1.0
    return found[1]


def _fit(name: str, offer: str) -> int:
    if name == offer:
        return _EXACT
    if name == offer.split("/")[0] + "/*":
        return _SUBTYPES
    return _ANYTHING if name == "*/*" else 0


def _weight(parameters: list[str]) -> float:
    try:
        return min(max(float(parameters[0][2:]), 0.0), 1.0) if parameters else 1.0
    except ValueError:
        return 1.0
