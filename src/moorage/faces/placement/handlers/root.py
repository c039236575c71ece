"""`GET /`: the supported versions. Needs no token."""

from moorage.faces.placement.microversion import LATEST_TEXT, LOWEST_TEXT
from moorage.faces.placement.request import Request, Response, json_answer

_VERSIONS = {
    "versions": [
        {
            "id": "v1.0",
            "max_version": LATEST_TEXT,
            "min_version": LOWEST_TEXT,
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
        }
    ]
}


async def show(request: Request) -> Response:
    """Answer with the range of microversions."""
    return json_answer(_VERSIONS, request.now())
