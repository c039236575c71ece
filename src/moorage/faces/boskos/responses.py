"""What Boskos answers: resources and metrics as JSON, refusals in its words.

Source: what was seen on the wire, and the structures and formats of its source.
"""

from collections.abc import Iterable, Mapping

from moorage.core.admission.compat.slots_by_name import Counts
from moorage.core.admission.model import Slot
from moorage.core.errors import Code, Error
from moorage.faces.golang.responses import JSON, Answer, refusal, text_answer
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
"""Every other code is 500: its clients try that again a few times, and then give up."""


def resource(slot: Slot) -> str:
    """Return a resource."""
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


def resource_answer(slot: Slot) -> Answer:
    """Answer one resource."""
    return text_answer(resource(slot))


def resources_answer(slots: Iterable[Slot]) -> Answer:
    """Answer several."""
    return text_answer(json_list(map(resource, slots)) + "\n")


def owners_answer(owners: Mapping[str, str]) -> Answer:
    """Answer who has lost which resource."""
    return text_answer(json_strings(owners))


def metric_answer(kind: str, found: Counts) -> Answer:
    """Answer how many resources of a type are in which state, and whose."""
    body = json_object(
        [
            ("type", json_string(kind)),
            ("current", json_numbers(found.states)),
            ("owner", json_numbers(found.owners)),
        ]
    )
    return Answer(200, raw_bytes(body), JSON)


def refused(error: Error, prefix: str = "", kind: str = "") -> Answer:
    """Answer a refusal.

    Args:
        error: of the core.
        prefix: what could not be done.
        kind: the type that was asked for.
    """
    text = error.message
    if error.code is Code.POOL_UNKNOWN:
        text = f"resource type {quoted(kind)} does not exist"
    return refusal(STATUSES.get(error.code, 500), prefix + text)
