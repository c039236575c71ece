"""Error responses of Placement: one table from code to status, one format for the body.

Source: Placement API reference, "Errors"; OpenStack API working group, "Errors" guideline. The
`code` of the body is shown from microversion 1.23 on.
"""

import re
from collections.abc import Callable, Mapping
from html import escape
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from moorage.core.errors import Code, Error
from moorage.faces.query_strings.refusals import UNDEFINED, ProblemError
from moorage.faces.web import RETRY_AFTER

CONCURRENT_UPDATE = "placement.concurrent_update"
DUPLICATE_NAME = "placement.duplicate_name"
INVENTORY_IN_USE = "placement.inventory.inuse"
PROVIDER_IN_USE = "placement.resource_provider.inuse"
PROVIDER_NOT_FOUND = "placement.resource_provider.not_found"
CANNOT_DELETE_PARENT = "placement.resource_provider.cannot_delete_parent"

CODE_SINCE = 23
"""First microversion whose error bodies show a code."""


class WireProblem(NamedTuple):
    """The wire form of a refusal."""

    status: int
    code: str = UNDEFINED
    prefix: str = ""
    """Put before the message; braces stand for variables of the address, in their order."""
    message: str = ""
    """Shown in place of the core's message, in the same form."""


NO_ROOM = "Unable to allocate inventory: "
UPDATE_CONFLICT = "update conflict: "
GENERATION_CHANGED = (
    "Resource provider's generation already changed. Please update the generation and try again."
)

OUTCOMES: dict[Code, WireProblem] = {
    Code.PROVIDER_NOT_FOUND: WireProblem(404),
    Code.INVENTORY_NOT_FOUND: WireProblem(404),
    Code.ALLOCATIONS_NOT_FOUND: WireProblem(404),
    Code.CLASS_NOT_FOUND: WireProblem(404),
    Code.TRAIT_NOT_FOUND: WireProblem(404),
    Code.TOKEN_NOT_FOUND: WireProblem(404),
    Code.POOL_NOT_FOUND: WireProblem(404),
    Code.TEMPLATE_NOT_FOUND: WireProblem(404),
    Code.LEASE_NOT_FOUND: WireProblem(404),
    Code.SLOT_NOT_FOUND: WireProblem(404),
    Code.AGENT_NOT_FOUND: WireProblem(404),
    Code.GROUP_NOT_FOUND: WireProblem(404),
    Code.PLACE_NOT_FOUND: WireProblem(404),
    Code.IMPORT_NOT_FOUND: WireProblem(404),
    Code.RESHAPE_NOT_FOUND: WireProblem(404),
    Code.BOOKING_NOT_FOUND: WireProblem(404),
    Code.PROVIDER_UNKNOWN: WireProblem(400),
    Code.PARENT_UNKNOWN: WireProblem(400),
    Code.CLASS_UNKNOWN: WireProblem(400),
    Code.TRAIT_UNKNOWN: WireProblem(400),
    Code.INVENTORY_UNKNOWN: WireProblem(400),
    Code.POOL_UNKNOWN: WireProblem(400),
    Code.PROVIDER_GENERATION: WireProblem(409, CONCURRENT_UPDATE),
    Code.CONSUMER_GENERATION: WireProblem(409, CONCURRENT_UPDATE),
    Code.DUPLICATE_PROVIDER: WireProblem(409, DUPLICATE_NAME),
    Code.INVENTORY_EXISTS: WireProblem(409, CONCURRENT_UPDATE),
    Code.CLASS_EXISTS: WireProblem(409),
    Code.POOL_EXISTS: WireProblem(409),
    Code.POOL_GENERATION: WireProblem(409),
    Code.TEMPLATE_EXISTS: WireProblem(409),
    Code.TEMPLATE_GENERATION: WireProblem(409),
    Code.BOOKING_GENERATION: WireProblem(409),
    Code.KEY_REUSED: WireProblem(409),
    Code.TOKEN_STALE: WireProblem(409),
    Code.LEASE_ENDED: WireProblem(409),
    Code.NOT_WAITING: WireProblem(409),
    Code.OUTCOME_TOLD: WireProblem(409),
    Code.RECORD_CHANGED: WireProblem(409),
    Code.NOT_OFFERED: WireProblem(409),
    Code.SLOT_STATE: WireProblem(409),
    Code.STALE_BOOT: WireProblem(409),
    Code.SUPERSEDED_BOOT: WireProblem(409),
    Code.STALE_REPORT: WireProblem(409),
    Code.REPORT_CONFLICT: WireProblem(409),
    Code.AGENT_EXISTS: WireProblem(409),
    Code.NOT_ACCEPTED: WireProblem(409),
    Code.POLICY_FINAL: WireProblem(409),
    Code.NOT_EXPUNGED: WireProblem(409),
    Code.FENCED: WireProblem(409),
    Code.IMPORT_EXISTS: WireProblem(409),
    Code.IMPORT_TAKEN: WireProblem(409),
    Code.RESHAPE_CHANGED: WireProblem(409),
    Code.EFFECT_CHANGED: WireProblem(409),
    Code.RESHAPE_UNDONE: WireProblem(409),
    Code.HOLDER_MISMATCH: WireProblem(403),
    Code.CLASS_MANAGED: WireProblem(409),
    Code.ROOT_TAKEN: WireProblem(409),
    Code.NOT_OWNER: WireProblem(409),
    Code.INVENTORY_IN_USE: WireProblem(409, INVENTORY_IN_USE, UPDATE_CONFLICT),
    Code.PROVIDER_IN_USE: WireProblem(409, PROVIDER_IN_USE),
    Code.PROVIDER_HAS_CHILDREN: WireProblem(409, CANNOT_DELETE_PARENT),
    Code.CLASS_IN_USE: WireProblem(409),
    Code.TRAIT_IN_USE: WireProblem(409),
    Code.POOL_IN_USE: WireProblem(409),
    Code.SLOT_EXISTS: WireProblem(409),
    Code.SLOT_IN_USE: WireProblem(409),
    Code.HAS_ALLOCATIONS: WireProblem(409),
    Code.GROUP_IN_USE: WireProblem(409),
    Code.GROUP_BEING_DELETED: WireProblem(409),
    Code.LEDGER_IN_USE: WireProblem(409),
    Code.INVENTORY_MISSING: WireProblem(409, prefix=NO_ROOM),
    Code.CAPACITY_EXCEEDED: WireProblem(409, prefix=NO_ROOM),
    Code.UNITS_VIOLATED: WireProblem(409, prefix=NO_ROOM),
    Code.NO_CAPACITY: WireProblem(409),
    Code.RESHAPE_REFUSED: WireProblem(409),
    Code.UNITS_ABOVE_LIMIT: WireProblem(400),
    Code.QUOTA_EXCEEDED: WireProblem(409),
    Code.BOOKED: WireProblem(409),
    Code.ASKER_REFUSED: WireProblem(403),
    Code.PRIORITY_ABOVE_MAX: WireProblem(400),
    Code.HOLD_ABOVE_MAX: WireProblem(400),
    Code.TEMPLATE_FULL: WireProblem(503),
    Code.QUEUE_FULL: WireProblem(503),
    Code.OWNER_QUEUE_FULL: WireProblem(503),
    Code.TREE_REFUSED: WireProblem(409),
    Code.CHANGES_GONE: WireProblem(410),
    Code.DECOMMISSIONED: WireProblem(410),
    Code.INVALID: WireProblem(400),
    Code.STANDARD_CLASS: WireProblem(400),
    Code.STANDARD_TRAIT: WireProblem(400),
    Code.REPARENT_REFUSED: WireProblem(400),
    Code.TREE_LOOP: WireProblem(400),
    Code.LIMIT_EXCEEDED: WireProblem(400),
    Code.OBSERVER_FAILED: WireProblem(400),
    Code.SEARCH_INCOMPLETE: WireProblem(503),
    Code.OVERLOADED: WireProblem(503),
    Code.UNAVAILABLE: WireProblem(503),
    Code.IMPORTING: WireProblem(503),
}
"""The wire form of each error code of the core."""

EXPLANATIONS = {
    400: "The server could not comply with the request since it is either malformed or "
    "otherwise incorrect.",
    401: "This server could not verify that you are authorized to access the document you "
    "requested. Either you supplied the wrong credentials (e.g., bad password), or your browser "
    "does not understand how to supply the credentials required.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    405: "The method {} is not allowed for this resource. ",
    406: "The resource could not be generated that was acceptable to your browser\n"
    "(content of type {}. ",
    409: "There was a conflict when trying to complete your request.",
    410: "This resource is no longer available. No forwarding address is given.",
    413: "The body of your request was too large for this server.",
    414: "The request URI was too long for this server.",
    415: "The request media type {} is not supported by this server.\n",
    500: "The server has either erred or is incapable of performing the requested operation.",
    503: "The server is currently unavailable. Please try again at a later time.",
}
"""The first sentence of every refusal, by status. Braces stand for its `subject`."""

ABOUT_SUBJECT = frozenset({405, 406, 415})
"""Statuses whose sentence names a part of the request; their detail ends without blank lines."""

_BREAK = re.compile(r"<br.*?>", re.IGNORECASE)
_COMMENT = re.compile(r"<!--|-->")
_TAG = re.compile(r"<.*?>", re.DOTALL)

DETAIL_LENGTH_MAX = 131_072
"""Characters of a detail that are shown: it may quote a very long key of a body."""


def problem_of(
    error: Error, exceptions: Mapping[Code, WireProblem], path: tuple[str, ...] = ()
) -> ProblemError:
    """Translate an error of the core.

    Args:
        error: the error.
        exceptions: a route's deviations from the table.
        path: values for the braces in texts; usually the variables of the address.
    """
    outcome = exceptions.get(error.code) or OUTCOMES[error.code]
    headers = (RETRY_AFTER,) if outcome.status == 503 else ()
    message = outcome.message.format(*path) if outcome.message else error.message
    message = outcome.prefix.format(*path) + message
    return ProblemError(outcome.status, message, outcome.code, headers=headers)


def title_of(status: int) -> str:
    """Return the title of a status, as clients of this API expect it."""
    return HTTPStatus(status).phrase


def body_json(problem: ProblemError, request_id: str, version: int | None) -> bytes:
    """Return the body as JSON; `version` is None if it could not be negotiated."""
    shown: dict[str, Any] = {
        "status": problem.status,
        "title": title_of(problem.status),
        "detail": _plain(_page(problem)),
    }
    if version is not None and version >= CODE_SINCE:
        shown["code"] = problem.code
    shown["request_id"] = request_id
    return msgspec.json.encode({"errors": [{**shown, **problem.members}]})


def body_html(problem: ProblemError) -> bytes:
    """Return the body as HTML."""
    title = f"{problem.status} {title_of(problem.status)}"
    return (
        f"<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>\n"
        f"  {_page(problem, _escaped)}\n </body>\n</html>"
    ).encode()


def body_text(problem: ProblemError) -> bytes:
    """Return the body as plain text."""
    return f"{problem.status} {title_of(problem.status)}\n\n{_plain(_page(problem))}".encode()


def body_unauthorized(problem: ProblemError, request_id: str) -> bytes:
    """Return the body of a 401, whose format differs because the original's middleware makes it.

    Clients such as osc-placement expect `errors` in every refusal and fail without it. So it is
    added if there is a detail, for which the original has no case.
    """
    title = title_of(problem.status)
    body: dict[str, Any] = {
        "message": _page(problem),
        "code": f"{problem.status} {title}",
        "title": title,
    }
    if problem.detail:
        fault = {"status": problem.status, "title": title, "detail": problem.detail}
        body["errors"] = [fault | {"request_id": request_id}]
    return msgspec.json.encode(body)


def _page(problem: ProblemError, quoted: Callable[[str], str] = str) -> str:
    """Return the text as HTML; the other forms are derived from it.

    Args:
        problem: the refusal.
        quoted: escapes text for HTML.
    """
    explanation, detail = EXPLANATIONS[problem.status], quoted(problem.detail[:DETAIL_LENGTH_MAX])
    if problem.status in ABOUT_SUBJECT:
        opening = explanation.format(quoted(problem.subject))
        return f"{opening}<br /><br />\n{detail}"
    return f"{quoted(explanation)}<br /><br />\n{detail}\n\n"


def _plain(page: str) -> str:
    """Return a page as one line without markup; anything that looks like a tag is removed."""
    line = page.replace("\n", " ").replace("\r", "")
    return _replaced(_TAG, "", _COMMENT.sub("", _replaced(_BREAK, "\n", line)))


def _replaced(tag: re.Pattern[str], put: str, line: str) -> str:
    """Replace tags, up to the last `>`: searching beyond it would take quadratic time."""
    head, end, rest = line.rpartition(">")
    return tag.sub(put, head + end) + rest


def _escaped(text: str) -> str:
    return escape(text).encode("ascii", "xmlcharrefreplace").decode()
