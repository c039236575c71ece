"""When a unit is released: the steps of the work that a host has it for, and what ends it.

The steps are: granted, sent, answered, seen not busy. Each is stored in the record of the lease
before the next one is taken, and raises the version of the state. A unit is released only on
evidence: a reading of the host that began after the last step, and shows that it is not busy.
"After" needs no clock: the reader notes the state before it reads, and the release counts only if
the version is still the same.

The host need not have been seen busy: short work never is.
"""

from dataclasses import dataclass, replace
from enum import Enum
from http import HTTPStatus

WIRE_GRACE_SECONDS = 90.0
"""A request without an answer may start work for this long: Ironic's `rpc_response_timeout` is
60 seconds."""

SEND_SECONDS = 15.0
"""A request whose storing has taken longer is not sent any more: its process was stopped meanwhile,
or Moorage was slow. With 10 seconds for the connection and Ironic's 60 it is within the grace."""

GRANT_GRACE_SECONDS = 10.0
"""A process that was granted a unit stores that it sends the request within this time."""


class RequestOutcome(Enum):
    """The meaning of an answer for the requested work."""

    ACCEPTED = "accepted"
    """It may have begun."""
    REFUSED = "refused"
    """It has not begun, and never will."""
    UNKNOWN = "unknown"
    """A server error, or the connection was lost: it may still begin."""


@dataclass(frozen=True)
class WorkState:
    """The known state of the work for which a host has a unit.

    `sent` has the requests that have no answer yet. `begun`: a request may have started work, or
    the host was found busy. `version` is the number of steps, and `age` the seconds since the last
    one, or since the grant if there was none.
    """

    version: int = 0
    age: float = 0.0
    sent: frozenset[str] = frozenset()
    begun: bool = False


class NotSentError(Exception):
    """An answer names a request that was not sent, or was answered before."""


def sent(state: WorkState, request: str) -> WorkState:
    """Return the state with one more request under way; store it before the request is sent.

    Requests that have had no answer until they can start nothing any more are dropped;
    they may have started work.
    """
    if state.age >= WIRE_GRACE_SECONDS and (gone := state.sent - {request}):
        return _step(state, state.sent - gone | {request}, begun=True)
    return _step(state, state.sent | {request}, state.begun)


def answered(state: WorkState, request: str, outcome: RequestOutcome) -> WorkState:
    """Return the state with the answer to a request; an unknown outcome counts as no answer.

    Raises NotSentError.
    """
    if request not in state.sent:
        raise NotSentError(f"Request {request} was not sent, or was answered before.")
    if outcome is RequestOutcome.UNKNOWN:
        return state
    begun = state.begun or outcome is RequestOutcome.ACCEPTED
    return _step(state, state.sent - {request}, begun)


def found_busy(state: WorkState) -> WorkState:
    """Return the state of a host that works although nobody has asked for a unit."""
    return _step(state, state.sent, begun=True)


def outcome_of(status: int | None) -> RequestOutcome:
    """Return what the status of an answer says; None: there was no answer."""
    if status is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return RequestOutcome.UNKNOWN
    return RequestOutcome.REFUSED if status >= HTTPStatus.BAD_REQUEST else RequestOutcome.ACCEPTED


def is_over_after_answer(state: WorkState) -> bool:
    """Return whether the unit can be released without a reading: all requests were refused."""
    return state.version > 0 and not state.sent and not state.begun


def is_over_after_reading(noted: WorkState, *, busy: bool) -> bool:
    """Return whether a reading proves that the host no longer does this work.

    Args:
        noted: the state, noted before the reading began. Release only while it has this version.
        busy: what the reading shows.
    """
    if busy:
        return False
    if not noted.version:
        return noted.age >= GRANT_GRACE_SECONDS
    return not noted.sent or noted.age >= WIRE_GRACE_SECONDS


def _step(state: WorkState, sent: frozenset[str], begun: bool) -> WorkState:
    return replace(state, version=state.version + 1, age=0.0, sent=sent, begun=begun)
