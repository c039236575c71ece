"""Tells from Ironic's answer to a request for a provision state whether work may have begun.

A server error usually says nothing, see `unit_release.py`. Some are refusals all the same: Ironic
answers them before it starts anything, or has put the node back. They are known by their text,
which only Ironic writes; a proxy that answers 503 does not know what Ironic did.

Source: `ironic/common/exception.py` and `conductor/manager.py` of release 39; `make baremetal`
compares the texts.
"""

from http import HTTPStatus
from typing import Final

from moorage.integrations.provisioning import unit_release
from moorage.integrations.provisioning.unit_release import RequestOutcome

LOCKED: Final = "is locked by host"
"""Part of NodeLocked (409): somebody else works on the node for a moment."""

BUSY_IRONIC: Final = (
    "The concurrent action limit for",
    "cannot be performed due to lack of free conductor workers",
)
"""Parts of ConcurrentActionLimit, which comes before all else, and of NoFreeConductorWorker, after
which the node has its former state again (both 503)."""


def outcome_of(status: int | None, fault: str) -> RequestOutcome:
    """Return what an answer says of the work that was asked for.

    Args:
        status: of the answer; None: there was none.
        fault: the text of Ironic's error; empty: there is none, or it is not Ironic's.
    """
    if _is_full(status, fault):
        return RequestOutcome.REFUSED
    return unit_release.outcome_of(status)


def is_for_now(status: int | None, fault: str) -> bool:
    """Return whether the same request may succeed in a moment: the host keeps its place in line."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:  # of a proxy before Ironic: nothing has begun
        return True
    return (status == HTTPStatus.CONFLICT and LOCKED in fault) or _is_full(status, fault)


def _is_full(status: int | None, fault: str) -> bool:
    return status == HTTPStatus.SERVICE_UNAVAILABLE and any(one in fault for one in BUSY_IRONIC)
