"""Which of Ironic's errors say that nothing has begun."""

import json

import pytest

from moorage.integrations.ironic.nodes import fault_of
from moorage.integrations.ironic.refusals import is_for_now, outcome_of
from moorage.integrations.provisioning.unit_release import RequestOutcome
from tests.support.ironic_double import errors

NO, YES, MAYBE = RequestOutcome.REFUSED, RequestOutcome.ACCEPTED, RequestOutcome.UNKNOWN
LIMIT = errors.limit_reached().members["faultstring"]
WORKER = errors.no_worker().members["faultstring"]
LOCKED = errors.locked("a", "b").members["faultstring"]


@pytest.mark.parametrize(
    ("status", "fault", "outcome", "again"),
    [
        (503, LIMIT, NO, True),
        (503, LIMIT.replace("provisioning", "unprovisioning"), NO, True),
        (503, LIMIT.replace("provisioning", "service"), NO, True),
        (503, WORKER, NO, True),
        (503, f"{WORKER}\nTraceback (most recent call last): ...", NO, True),
        (409, LOCKED, NO, True),
        (409, "Node a is associated with instance b.", NO, False),
        (503, "Resource temporarily unavailable, please retry.", MAYBE, False),
        (503, "Service Unavailable", MAYBE, False),
        (503, "", MAYBE, False),
        (500, LIMIT, MAYBE, False),
        (500, "Timed out waiting for a reply to message ID 0", MAYBE, False),
        (502, "", MAYBE, False),
        (504, WORKER, MAYBE, False),
        (None, WORKER, MAYBE, False),
        (202, "", YES, False),
        (400, "", NO, False),
        (429, "", NO, True),
        (404, "", NO, False),
    ],
)
def test_outcomes(status: int | None, fault: str, outcome: RequestOutcome, again: bool) -> None:
    """A server error is a refusal only with the words of one that comes before all work."""
    assert outcome_of(status, fault) is outcome
    assert is_for_now(status, fault) is again


@pytest.mark.parametrize(
    "body",
    [
        b"<html><body>The concurrent action limit for deploying has been reached</body></html>",
        json.dumps({"error": {"message": LIMIT}}).encode(),
        json.dumps(LIMIT).encode(),
        json.dumps({"error_message": LIMIT}).encode(),
        b"",
        b"\x1f\x8b",
    ],
)
def test_only_ironics_own_errors_count(body: bytes) -> None:
    """The words in an answer that has not the form of Ironic's errors say nothing."""
    assert outcome_of(503, fault_of(body)) is MAYBE
