"""The walk of a host that occupies a unit: granted, sent, answered, seen not busy.

An episode is the time in which one lease belongs to a host. Every step is stored before the next
one is taken, and raises the version of the episode. A unit is released only on evidence: a reading
of the host that began after the last step, and shows that it is not busy. "After" needs no clock:
the reader notes the version before it reads, and the release counts only if it is still the same.

The host need not have been seen busy: short work never is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from http import HTTPStatus

WIRE_GRACE_SECONDS = 90.0
"""A request without an answer may start work for this long: Ironic's `rpc_response_timeout` is
60 seconds."""

GRANT_GRACE_SECONDS = 10.0
"""A process that was granted a unit stores that it sends the request within this time."""


class RequestOutcome(Enum):
    """What an answer says of the work that the request asked for."""

    ACCEPTED = "accepted"
    """It may have begun."""
    REFUSED = "refused"
    """It has not begun, and never will."""
    UNKNOWN = "unknown"
    """A server error, or the connection was lost: it may still begin."""


@dataclass(frozen=True)
class Episode:
    """The steps so far.

    `granted_at` and the values of `sent` are seconds of one clock that does not jump, that of the
    Moorage server. `sent` has the requests that have no answer yet. `begun`: a request may have
    started work.
    """

    granted_at: float
    version: int = 0
    sent: Mapping[str, float] = field(default_factory=dict)
    begun: bool = False


@dataclass(frozen=True)
class Reading:
    """What a reader has seen of a host: the version and the time were noted before it read."""

    version: int
    at: float
    busy: bool


class NotSentError(Exception):
    """An answer names a request that was not sent, or was answered before."""


def sent(episode: Episode, request: str, now: float) -> Episode:
    """Return the episode with one more request under way; store it before the request is sent."""
    return replace(episode, version=episode.version + 1, sent={**episode.sent, request: now})


def answered(episode: Episode, request: str, outcome: RequestOutcome) -> Episode:
    """Return the episode with the answer to a request; an unknown outcome counts as no answer.

    Raises NotSentError.
    """
    if request not in episode.sent:
        raise NotSentError(f"Request {request} was not sent, or was answered before.")
    if outcome is RequestOutcome.UNKNOWN:
        return episode
    others = {name: at for name, at in episode.sent.items() if name != request}
    begun = episode.begun or outcome is RequestOutcome.ACCEPTED
    return replace(episode, version=episode.version + 1, sent=others, begun=begun)


def outcome_of(status: int | None) -> RequestOutcome:
    """Return what the status of an answer says; None: there was no answer."""
    if status is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return RequestOutcome.UNKNOWN
    return RequestOutcome.REFUSED if status >= HTTPStatus.BAD_REQUEST else RequestOutcome.ACCEPTED


def is_over_after_answer(episode: Episode) -> bool:
    """Return whether the unit can be released without a reading: all requests were refused."""
    return episode.version > 0 and not episode.sent and not episode.begun


def is_over_after_reading(episode: Episode, reading: Reading) -> bool:
    """Return whether a reading proves that the host no longer works for this episode."""
    if reading.busy or reading.version != episode.version:
        return False
    if not episode.version:
        return reading.at - episode.granted_at >= GRANT_GRACE_SECONDS
    return all(reading.at - at >= WIRE_GRACE_SECONDS for at in episode.sent.values())
