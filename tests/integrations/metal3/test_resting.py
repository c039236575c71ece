"""Which failed hosts need units, row by row; and the same rule for Ironic's nodes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from moorage.integrations.ironic.states import BUSY, FAILED, is_busy
from moorage.integrations.metal3 import resting
from moorage.integrations.metal3.failures import FAILURES, failed_again
from moorage.integrations.metal3.hosts import OWN, PAUSED, has_failed
from moorage.integrations.metal3.reconcile import _Cluster
from moorage.integrations.metal3.resting import (
    STILL_SECONDS,
    STUCK_SECONDS,
    UNSURE_SECONDS,
    Resting,
)
from moorage.integrations.metal3.rules import Rules
from moorage.integrations.provisioning.occupation import Occupation, occupation_of
from tests.integrations.metal3.test_hosts import IMAGE, host

LOOKED = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
OURS = {PAUSED: OWN}
NEEDS, KEEPS, FREE = Occupation
SOON = STILL_SECONDS / 2


def failed(state: str, error: str, count: int = 1, **more: Any) -> dict[str, Any]:
    """Return a host with an error that was found at noon."""
    found = host(state, **more)
    stored = f"{LOOKED:%Y-%m-%dT%H:%M:%SZ}"
    found["status"] |= {"errorType": error, "errorCount": count, "lastUpdated": stored}
    return found


class Watch:
    """Looks at one host as time passes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = 1_000.0
        monkeypatch.setattr(resting, "monotonic", lambda: self.clock)
        self.resting = Resting(lambda: LOOKED + timedelta(seconds=self.clock - 1_000.0))
        self._cluster = _Cluster(None, Rules.of_pool("p"), self.resting)  # type: ignore[arg-type] # sends nothing

    def after(self, seconds: float, found: dict[str, Any]) -> Occupation:
        """Look at a host after some seconds, and return what it does to its units."""
        self.clock += seconds
        self.resting.look({"u": found})
        return self._cluster.occupation(found)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """One watch, which has seen nothing yet."""
    return Watch(monkeypatch)


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ("inspecting", "inspection error"),
        ("preparing", "preparation error"),
        ("provisioning", "provisioning error"),
    ],
)
def test_a_host_gives_its_units_back_once_it_is_paused(
    watch: Watch, state: str, error: str
) -> None:
    """At first it may try again at any moment; then it is not counted, but keeps what it has until
    our pause has taken effect; a try begins when our pause is gone.
    """
    found, paused = failed(state, error), failed(state, error, annotations=OURS)
    assert watch.after(0.0, found) is NEEDS
    assert watch.after(SOON, found) is NEEDS
    assert watch.after(SOON, found) is KEEPS
    assert watch.resting.may_be_paused(found)
    assert watch.after(1.0, paused) is KEEPS
    assert watch.after(STILL_SECONDS, paused) is FREE
    assert watch.after(1.0, found) is NEEDS


def test_a_removal_is_free_at_once(watch: Watch) -> None:
    """Nothing holds it back, so nothing is lost by counting it again; not while it may go on."""
    found = failed("deprovisioning", "provisioning error")
    assert watch.after(0.0, found) is NEEDS
    assert watch.after(STILL_SECONDS, found) is FREE
    assert watch.after(1.0, failed("deprovisioning", "provisioning error", 2)) is NEEDS


@pytest.mark.parametrize("error", ["registration error", "power management error", "another"])
def test_an_error_that_says_nothing_of_the_node(watch: Watch, error: str) -> None:
    """Ironic may still work on it: it keeps its units until Ironic would have ended its work."""
    found = failed("inspecting", error)
    assert watch.after(0.0, found) is NEEDS
    assert watch.after(UNSURE_SECONDS / 2, failed("inspecting", error, 2)) is NEEDS
    assert watch.after(UNSURE_SECONDS / 2, failed("inspecting", error, 3)) is KEEPS


@pytest.mark.parametrize("state", ["inspecting", "preparing", "provisioning"])
def test_an_error_that_changes_each_minute(watch: Watch, state: str) -> None:
    """None of them says anything of the node: they count as one error, also with a retry a minute.

    What a host says that has none for a moment counts from the beginning.
    """
    kinds = ("registration error", "power management error")
    minutes = int(UNSURE_SECONDS // 60)
    seen = [
        watch.after(60.0, failed(state, kinds[n % 2], n, spec=IMAGE)) for n in range(minutes + 1)
    ]
    assert seen == [NEEDS] * minutes + [KEEPS]
    assert watch.after(1.0, host(state, spec=IMAGE)) is NEEDS
    assert watch.after(60.0, failed(state, kinds[0], 9, spec=IMAGE)) is NEEDS


@pytest.mark.parametrize("state", ["inspecting", "preparing", "provisioning"])
@pytest.mark.parametrize("error", ["registration error", "inspection error", "", "another"])
def test_a_new_process_sees_which_hosts_rest(watch: Watch, state: str, error: str) -> None:
    """A governor has paused it after it had rested: one that was started since does not count it,
    also if people have changed the error or the specification meanwhile; once the operator has
    stored something, it may work.
    """
    before = failed(state, "registration error", 6, spec=IMAGE)
    rested = {**OURS, FAILURES: failed_again(before).text()}
    found = failed(state, error, 6, spec=IMAGE, annotations=rested)
    assert watch.after(1.0, found) is KEEPS
    found["metadata"]["generation"] = 7
    assert watch.after(1.0, found) is KEEPS
    assert watch.after(STILL_SECONDS, found) is FREE
    assert watch.after(1.0, {**found, "metadata": before["metadata"]}) is NEEDS, "people let it go"
    found["status"]["lastUpdated"] = "2026-01-01T12:00:01Z"
    assert watch.after(1.0, found) is (KEEPS if has_failed(found) else NEEDS)


def test_an_idle_host_that_cannot_start(watch: Watch) -> None:
    """It is counted for a minute; a lease that people revoke after that is not made again."""
    found = failed("registering", "registration error")
    assert watch.after(0.0, found) is NEEDS
    assert watch.after(STUCK_SECONDS, failed("registering", "registration error", 2)) is KEEPS
    assert watch.after(1.0, failed("registering", "registration error", annotations=OURS)) is FREE
    assert watch.after(1.0, found) is NEEDS  # people let it go


@pytest.mark.parametrize(
    ("count", "age", "may"),
    [
        *((1, 15, True), (1, 45, True), (1, 55, False), (1, 175, False), (1, 181, True)),
        *((4, 400, True), (4, 475, False), (4, 1_000, False), (4, 1_021, True)),
    ],
)
def test_no_pause_is_stored_while_a_try_may_begin(
    watch: Watch, count: int, age: float, *, may: bool
) -> None:
    """The operator tries again between the half and the whole of its back-off; an inspection or a
    preparation begins before that is stored.
    """
    found = failed("inspecting", "inspection error", count)
    watch.after(0.0, host("inspecting"))
    watch.after(0.0, found)
    watch.after(age, found)
    assert watch.resting.may_be_paused(found) is may
    later = failed("provisioning", "provisioning error", count, spec=IMAGE)
    watch.after(0.0, later)
    watch.after(age, later)
    assert watch.resting.may_be_paused(later), "the next state is stored first"


def test_a_removed_host_that_never_goes(watch: Watch) -> None:
    """It keeps its units while Ironic may still work on it, and not for ever."""
    found = host("deleting", deletionTimestamp="2026-01-01T00:00:00Z")
    assert watch.after(0.0, found) is KEEPS
    assert watch.after(UNSURE_SECONDS, found) is FREE


def test_ironic_has_the_same_rule() -> None:
    """A failure is a state of its own, which needs no units, and no state is both."""
    assert BUSY.isdisjoint(FAILED)
    for state in (*BUSY, *FAILED, "active", "available"):
        busy = is_busy(state)
        found = occupation_of(works=busy or state in FAILED, failed=state in FAILED)
        assert found is (NEEDS if busy else FREE), state
