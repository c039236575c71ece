"""Boskos' responses: resources and metrics as JSON, and its error texts.

Source: recorded traffic, and the structures and formats of its source code.
"""

from collections.abc import Iterable, Mapping

from moorage.core.admission.compat.slots_by_name import Counts
from moorage.core.admission.model import Slot
from moorage.core.errors import Code, Error
from moorage.faces.golang.responses import JSON, Response, refusal, text_answer
from moorage.faces.golang.texts import (
    json_list,
    json_numbers,
    json_object,
    json_string,
    json_strings,
    json_time,
    quoted,
    raw_bytes,
)

STATUSES = {
    Code.NO_CAPACITY: 404,
    Code.POOL_UNKNOWN: 404,
    Code.SLOT_NOT_FOUND: 404,
    Code.HOLDER_MISMATCH: 401,
    Code.SLOT_STATE: 409,
    Code.LIMIT_EXCEEDED: 400,
    Code.INVALID: 400,
}
"""Status by code. Every other code is 500, which the clients retry a few times."""


def resource(slot: Slot) -> str:
    """Return a resource as JSON."""
    members = [
        ("type", json_string(slot.pool)),
        ("name", json_string(slot.name)),
        ("state", json_string(slot.state)),
        ("owner", json_string(slot.owner)),
        ("lastupdate", json_time(slot.updated_at)),
        ("userdata", json_strings(slot.user_data)),
    ]
    if slot.expires_at is not None:
        members.append(("expiration-date", json_time(slot.expires_at)))
    return json_object(members)


def resource_answer(slot: Slot) -> Response:
    """Return the response with one resource."""
    return text_answer(resource(slot))


def resources_answer(slots: Iterable[Slot]) -> Response:
    """Return the response with several resources."""
    return text_answer(json_list(map(resource, slots)) + "\n")


def owners_answer(owners: Mapping[str, str]) -> Response:
    """Return the response with the previous owners of reset resources."""
    return text_answer(json_strings(owners))


def metric_answer(kind: str, found: Counts) -> Response:
    """Return the response with the number of a type's resources by state and by owner."""
    body = json_object(
        [
            ("type", json_string(kind)),
            ("current", json_numbers(found.states)),
            ("owner", json_numbers(found.owners)),
        ]
    )
    return Response(200, raw_bytes(body), JSON)


def refused(error: Error, prefix: str = "", kind: str = "") -> Response:
    """Return the response for an error.

    Args:
        error: the core's error.
        prefix: text before the message: what failed.
        kind: the requested type.
    """
    text = error.message
    if error.code is Code.POOL_UNKNOWN:
        text = f"resource type {quoted(kind)} does not exist"
    return refusal(STATUSES.get(error.code, 500), prefix + text)
