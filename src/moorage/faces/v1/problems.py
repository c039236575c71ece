"""Error responses of the native API: one table from code to status, one format for the body.

Source: RFC 9457, "Problem Details for HTTP APIs"; `code`, `request_id`, `oldest`, `explain`, `plan`
and `differences` are extension members.
"""

from http import HTTPStatus

import msgspec

from moorage.core.errors import Code, Error
from moorage.faces.web import RETRY_AFTER
from moorage.wire.problems import Problem

STATUSES: dict[Code, int] = {
    Code.PROVIDER_NOT_FOUND: 404,
    Code.INVENTORY_NOT_FOUND: 404,
    Code.ALLOCATIONS_NOT_FOUND: 404,
    Code.CLASS_NOT_FOUND: 404,
    Code.TRAIT_NOT_FOUND: 404,
    Code.TOKEN_NOT_FOUND: 404,
    Code.POOL_NOT_FOUND: 404,
    Code.TEMPLATE_NOT_FOUND: 404,
    Code.LEASE_NOT_FOUND: 404,
    Code.SLOT_NOT_FOUND: 404,
    Code.AGENT_NOT_FOUND: 404,
    Code.GROUP_NOT_FOUND: 404,
    Code.PLACE_NOT_FOUND: 404,
    Code.IMPORT_NOT_FOUND: 404,
    Code.RESHAPE_NOT_FOUND: 404,
    Code.BOOKING_NOT_FOUND: 404,
    Code.PROVIDER_UNKNOWN: 422,
    Code.PARENT_UNKNOWN: 422,
    Code.CLASS_UNKNOWN: 422,
    Code.TRAIT_UNKNOWN: 422,
    Code.INVENTORY_UNKNOWN: 422,
    Code.POOL_UNKNOWN: 422,
    Code.PROVIDER_GENERATION: 409,
    Code.CONSUMER_GENERATION: 409,
    Code.DUPLICATE_PROVIDER: 409,
    Code.INVENTORY_EXISTS: 409,
    Code.CLASS_EXISTS: 409,
    Code.POOL_EXISTS: 409,
    Code.POOL_GENERATION: 409,
    Code.TEMPLATE_EXISTS: 409,
    Code.TEMPLATE_GENERATION: 409,
    Code.BOOKING_GENERATION: 409,
    Code.KEY_REUSED: 409,
    Code.TOKEN_STALE: 409,
    Code.LEASE_ENDED: 409,
    Code.NOT_WAITING: 409,
    Code.OUTCOME_TOLD: 409,
    Code.RECORD_CHANGED: 409,
    Code.NOT_OFFERED: 409,
    Code.SLOT_STATE: 409,
    Code.STALE_BOOT: 409,
    Code.SUPERSEDED_BOOT: 409,
    Code.STALE_REPORT: 409,
    Code.REPORT_CONFLICT: 409,
    Code.AGENT_EXISTS: 409,
    Code.NOT_ACCEPTED: 409,
    Code.POLICY_FINAL: 409,
    Code.NOT_EXPUNGED: 409,
    Code.FENCED: 409,
    Code.IMPORT_EXISTS: 409,
    Code.IMPORT_TAKEN: 409,
    Code.RESHAPE_CHANGED: 409,
    Code.RESHAPE_UNDONE: 409,
    Code.EFFECT_CHANGED: 409,
    Code.HOLDER_MISMATCH: 403,
    Code.CLASS_MANAGED: 409,
    Code.ROOT_TAKEN: 409,
    Code.NOT_OWNER: 409,
    Code.INVENTORY_IN_USE: 409,
    Code.PROVIDER_IN_USE: 409,
    Code.PROVIDER_HAS_CHILDREN: 409,
    Code.CLASS_IN_USE: 409,
    Code.TRAIT_IN_USE: 409,
    Code.POOL_IN_USE: 409,
    Code.SLOT_EXISTS: 409,
    Code.SLOT_IN_USE: 409,
    Code.HAS_ALLOCATIONS: 409,
    Code.GROUP_IN_USE: 409,
    Code.GROUP_BEING_DELETED: 409,
    Code.LEDGER_IN_USE: 409,
    Code.INVENTORY_MISSING: 409,
    Code.CAPACITY_EXCEEDED: 409,
    Code.UNITS_VIOLATED: 409,
    Code.NO_CAPACITY: 409,
    Code.RESHAPE_REFUSED: 409,
    Code.UNITS_ABOVE_LIMIT: 422,
    Code.QUOTA_EXCEEDED: 409,
    Code.BOOKED: 409,
    Code.ASKER_REFUSED: 403,
    Code.PRIORITY_ABOVE_MAX: 422,
    Code.HOLD_ABOVE_MAX: 422,
    Code.TEMPLATE_FULL: 429,
    Code.QUEUE_FULL: 429,
    Code.OWNER_QUEUE_FULL: 429,
    Code.TREE_REFUSED: 409,
    Code.CHANGES_GONE: 410,
    Code.DECOMMISSIONED: 410,
    Code.INVALID: 400,
    Code.STANDARD_CLASS: 400,
    Code.STANDARD_TRAIT: 400,
    Code.REPARENT_REFUSED: 400,
    Code.TREE_LOOP: 400,
    Code.LIMIT_EXCEEDED: 400,
    Code.OBSERVER_FAILED: 422,
    Code.SEARCH_INCOMPLETE: 503,
    Code.OVERLOADED: 503,
    Code.UNAVAILABLE: 503,
    Code.IMPORTING: 503,
}
"""HTTP status of each error code of the core."""

MEDIA_TYPE = "application/problem+json"

UNROUTED = "unrouted"
UNAUTHENTICATED = "unauthenticated"
FORBIDDEN = "forbidden"
ENCRYPTION_REQUIRED = "encryption_required"
REFUSED = "refused"
INTERNAL = "internal"
"""Codes besides those of the core, for requests that fail outside of it."""


class ProblemError(Exception):
    """An error response of the native API.

    `status` is an HTTP status, `detail` the reason; for `oldest` and `explain` see
    `wire.problems`.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(detail)
        self.status = int(status)
        self.code = code
        self.detail = detail
        self.more: dict[str, msgspec.Raw] = {}
        """Further members of the body, encoded."""
        self.oldest: str | None = None
        self.explain: str | None = None
        self.headers = headers


def problem_of(error: Error) -> ProblemError:
    """Translate an error of the core."""
    status = STATUSES[error.code]
    headers = (RETRY_AFTER,) if status in (429, 503) else ()
    return ProblemError(status, error.code, error.message, headers=headers)


def body_of(error: ProblemError, request_id: str) -> bytes:
    """Return the JSON body of an error response."""
    problem = Problem(
        title=HTTPStatus(error.status).phrase,
        status=error.status,
        detail=error.detail,
        code=error.code,
        request_id=request_id,
        oldest=error.oldest,
        explain=error.explain,
    )
    members = {k: v for k, v in msgspec.to_builtins(problem).items() if v is not None}
    return msgspec.json.encode({**members, **error.more})
