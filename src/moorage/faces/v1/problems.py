"""Every refusal of the native API: one table from code to status, one shape for the body.

Source: RFC 9457, "Problem Details for HTTP APIs"; `code` and `request_id` are our members.
"""

from http import HTTPStatus

import msgspec
from starlette.responses import Response

from moorage.core.errors import Code

STATUSES: dict[Code, int] = {
    Code.PROVIDER_NOT_FOUND: 404,
    Code.INVENTORY_NOT_FOUND: 404,
    Code.ALLOCATIONS_NOT_FOUND: 404,
    Code.CLASS_NOT_FOUND: 404,
    Code.TRAIT_NOT_FOUND: 404,
    Code.TOKEN_NOT_FOUND: 404,
    Code.PROVIDER_UNKNOWN: 422,
    Code.PARENT_UNKNOWN: 422,
    Code.CLASS_UNKNOWN: 422,
    Code.TRAIT_UNKNOWN: 422,
    Code.INVENTORY_UNKNOWN: 422,
    Code.PROVIDER_GENERATION: 409,
    Code.CONSUMER_GENERATION: 409,
    Code.DUPLICATE_PROVIDER: 409,
    Code.INVENTORY_EXISTS: 409,
    Code.CLASS_EXISTS: 409,
    Code.INVENTORY_IN_USE: 409,
    Code.PROVIDER_IN_USE: 409,
    Code.PROVIDER_HAS_CHILDREN: 409,
    Code.CLASS_IN_USE: 409,
    Code.TRAIT_IN_USE: 409,
    Code.INVENTORY_MISSING: 409,
    Code.CAPACITY_EXCEEDED: 409,
    Code.UNITS_VIOLATED: 409,
    Code.INVALID: 400,
    Code.STANDARD_CLASS: 400,
    Code.STANDARD_TRAIT: 400,
    Code.REPARENT_REFUSED: 400,
    Code.TREE_LOOP: 400,
    Code.LIMIT_EXCEEDED: 400,
    Code.OVERLOADED: 503,
    Code.UNAVAILABLE: 503,
}
"""The one table: what each code of the core becomes in this dialect."""

RETRY_SECONDS = "1"
"""What a 503 advises to wait."""


def problem(status: int, code: str, detail: str, request_id: str) -> Response:
    """Return the answer for a refusal."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": request_id,
    }
    headers = {"retry-after": RETRY_SECONDS} if status == 503 else {}
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return Response(
        msgspec.json.encode(body), status, headers, media_type="application/problem+json"
    )
