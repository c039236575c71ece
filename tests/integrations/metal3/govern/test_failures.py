"""What is read from the status of a host that has failed, row by row as the operator stores it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from moorage.integrations.metal3 import failures
from moorage.integrations.metal3.hosts import INSPECT, OWN, PAUSED
from moorage.integrations.provisioning.reconcile import Outcome
from tests.integrations.metal3.test_hosts import DELETED, IMAGE, OTHER, host

OURS = {PAUSED: OWN}
LOOKED = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
REGISTRATION = {"errorType": "registration error", "errorMessage": "no BMC", "errorCount": 1}
GIVEN_UP = {
    "errorType": "provisioning error",
    "errorMessage": "retry limit reached",
    "errorCount": 1,
    "provisioningFailCount": 5,
    "lastAttemptedImage": IMAGE["image"],
}


def failed(error: dict[str, Any], *words: Any, **more: Any) -> dict[str, Any]:
    """Return a host with an error in its status."""
    found = host(*words, **more)
    found["status"] |= {"lastUpdated": "2026-01-01T12:00:00Z", **error}
    return found


@pytest.mark.parametrize(
    ("given", "stays"),
    [
        (failed(GIVEN_UP, spec=IMAGE), True),
        (failed(GIVEN_UP, "ready", spec=IMAGE), True),
        (failed(GIVEN_UP, spec={"image": {**IMAGE["image"], "checksum": ""}}), True),
        (failed({**GIVEN_UP, "errorCount": 0}, spec=IMAGE), False),  # left by a deployment
        (failed({**GIVEN_UP, "provisioningFailCount": 0}, spec=IMAGE), False),  # people reset it
        (failed(GIVEN_UP, spec=OTHER), False),
        (failed(GIVEN_UP, spec=IMAGE, annotations={INSPECT: ""}), False),
        (failed(GIVEN_UP), False),  # no image: there is nothing to start
        (failed(GIVEN_UP, spec=IMAGE, **DELETED), False),
        (failed(GIVEN_UP, "provisioning", spec=IMAGE), False),
        (failed(GIVEN_UP, "deprovisioning", spec=IMAGE), False),
        (failed(REGISTRATION, "registering"), True),
        (failed(REGISTRATION, spec=IMAGE), True),
        (failed(REGISTRATION, "provisioned", OTHER, IMAGE), False),  # never held back
        (failed({**REGISTRATION, "errorType": "power management error"}, spec=IMAGE), False),
        (host(spec=IMAGE), False),
    ],
)
def test_hosts_that_cannot_start(given: dict[str, Any], *, stays: bool) -> None:
    """Only an idle host that the operator will not start at once needs no units."""
    assert failures.cannot_start(given) is stays
    assert (failures.again_at(given) is not None) is stays


@pytest.mark.parametrize(
    ("errors", "minutes"), [(1, 2), (2, 4), (5, 32), (6, 60), (9, 60), (4_000, 60)]
)
def test_how_long_a_host_waits(errors: int, minutes: int) -> None:
    """It waits as the operator does, by the number of its errors, but no longer than an hour."""
    given = failed({**GIVEN_UP, "errorCount": errors}, spec=IMAGE)
    assert failures.again_at(given) == LOOKED + timedelta(minutes=minutes)


@pytest.mark.parametrize("state", ["registering", "available", "inspecting"])
def test_a_registration_that_is_repeated_all_the_time(state: str) -> None:
    """The operator repeats some, as with a secret that is missing, each ten seconds, and counts all
    of them. The host waits by how often it was paused for them: no longer than it has failed
    already, but for the first minutes, so it goes on soon once the secret is there.
    """
    given, now = failed({**REGISTRATION, "errorCount": 0}, state, spec=IMAGE), LOOKED
    waits = []
    for _ in range(8):
        now += timedelta(minutes=1)
        given["status"]["errorCount"] += 6
        given["status"]["lastUpdated"] = now.isoformat()
        given["metadata"]["annotations"] = {
            **OURS,
            failures.FAILURES: failures.failed_again(given).text(),
        }
        again = failures.again_at(given) or failures.retry_at(given)
        assert again is not None
        waits.append(round((again - now).total_seconds() / 60))
        assert again - now <= max(timedelta(minutes=4), now - LOOKED)
        now = again
    assert waits == [2, 4, 8, 16, 32, 60, 60, 60]


@pytest.mark.parametrize("errors", [1, 4_000])
def test_a_registration_that_people_let_try_again(errors: int) -> None:
    """Without our count, as after its removal or a change of the host, it asks a minute later."""
    given = failed({**REGISTRATION, "errorCount": errors}, "registering", annotations=OURS)
    assert failures.again_at(given) == LOOKED + timedelta(minutes=1)


@pytest.mark.parametrize("said", [None, "", "soon"])
def test_a_status_without_a_time(said: Any) -> None:
    """A host that failed at an unknown time may ask at once."""
    assert failures.again_at(failed({**GIVEN_UP, "lastUpdated": said}, spec=IMAGE)) is None


def test_old_errors() -> None:
    """An error is an old one until the operator has stored another status."""
    before, after = (failed({**GIVEN_UP, "lastUpdated": f"2026-01-01T12:0{n}:00Z"}) for n in (0, 1))
    assert not failures.has_looked_since(before, failures.mark_of(before))
    assert failures.has_looked_since(after, failures.mark_of(before))
    assert failures.has_looked_since(after, None)


OK = Outcome("ok")


@pytest.mark.parametrize(
    ("given", "result"),
    [
        (host("provisioned", IMAGE, IMAGE), OK),
        (failed({"errorType": "power management error"}, "provisioned", IMAGE, IMAGE), OK),
        (host(), OK),
        (failed(GIVEN_UP, spec=IMAGE), Outcome("failed", "retry limit reached")),
        (failed(GIVEN_UP), Outcome("failed", "retry limit reached")),
        (failed(REGISTRATION, "registering"), Outcome("failed", "no BMC")),
        (host(spec=IMAGE, annotations={"baremetalhost.metal3.io/paused": "capm3"}), None),
        (host("registering"), None),
    ],
)
def test_what_became_of_work(given: dict[str, Any], result: Outcome | None) -> None:
    """Work is ok where it leads to, failed with an error; of what was not done nothing is said."""
    assert failures.result_of(given) == result
