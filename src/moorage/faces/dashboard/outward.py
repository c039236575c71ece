"""Puts the path prefix before the addresses in answers: inside, all but one begin with `/ui`.

Pages are rendered without it, so that readers on both sides of a proxy share them. Templates write
addresses in quotes, and a quote in any other text is escaped, so that nothing else looks alike.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from moorage.faces.dashboard.headers import Headers
from moorage.faces.dashboard.routing import ROOT

DESCRIPTION = "/v1/openapi.json"
"""The only address outside of the dashboard that its pages name."""

ATTRIBUTES = (
    "href",
    "src",
    "action",
    "formaction",
    "data-columns",
    "data-names",
    "data-machine",
)
"""Attributes of elements whose values are addresses."""

_ADDRESS = re.compile(rf'( (?:{"|".join(ATTRIBUTES)})=")(?={ROOT}[/?#"]|{DESCRIPTION}")')
_TARGET = re.compile(rf"\A((?:0; url=)?){ROOT}(?=[/?#]|\Z)")
_POINTING = (b"location", b"refresh")


def page_outward(text: str, prefix: str) -> str:
    """Return a rendered page, or an event with one, with complete addresses."""
    return _ADDRESS.sub(rf"\g<1>{prefix}", text) if prefix else text


def headers_outward(headers: Headers, prefix: str) -> Headers:
    """Return the headers of an answer with complete addresses."""
    if not prefix:
        return headers
    return [
        (name, _target_outward(value, prefix) if name in _POINTING else value)
        for name, value in headers
    ]


def _target_outward(value: bytes, prefix: str) -> bytes:
    return _TARGET.sub(rf"\g<1>{prefix}{ROOT}", value.decode("latin-1")).encode("latin-1")


async def events_outward(
    pieces: AsyncGenerator[bytes, None], prefix: str
) -> AsyncGenerator[bytes, None]:
    """Yield events with complete addresses."""
    async with aclosing(pieces):
        async for piece in pieces:
            yield page_outward(piece.decode(), prefix).encode() if prefix else piece
