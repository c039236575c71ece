"""How long work lasts: what the operator expects, until it was seen often enough."""

from datetime import UTC, datetime

import pytest

from moorage.integrations.ironic.durations import ENOUGH, KINDS_MAX, TYPICAL, Durations, Length
from moorage.integrations.ironic.gate.turns import turn_in
from moorage.integrations.ironic.nodes import Node
from moorage.integrations.ironic.reconcile import Picture
from moorage.integrations.ironic.rules import EVERY_VERB, Rules, parse
from moorage.integrations.ironic.states import EVENTS
from moorage.integrations.provisioning.rules import RulesError
from moorage.wire.admission import Lease
from tests.support.granted import granted

POOL = "deploy"
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def lease(number: int, verb: str = "active", pool: str = POOL) -> Lease:
    """Return the lease of a node that works."""
    return granted(
        f"ironic/node-{number}/{verb}",
        {pool: 1},
        id=f"lease-{number}",
        labels={"verb": verb},
        asked_at=NOW,
        granted_at=NOW,
    )


def picture(*leases: Lease, state: str = "active") -> Picture:
    """Return what a pass has seen."""
    names = (f"node-{number}" for number in range(2_000))
    nodes: dict[str, Node] = {name: {"provision_state": state} for name in names}
    return Picture(nodes, leases={one.key.split("/")[1]: [one] for one in leases})


def worked(durations: Durations, seconds: float, one: Lease, *, state: str = "active") -> None:
    """Let work begin, and end after some seconds."""
    durations.look(picture(), 0.0)
    durations.look(picture(one), 10.0)
    durations.look(picture(state=state), 10.0 + seconds)


def test_every_verb_has_a_typical_length() -> None:
    """Work of unknown duration is taken to last for minutes, not to be over at once."""
    assert {*TYPICAL} == {*EVENTS.values()} - {"abort"}
    durations = Durations()
    for verb in {*EVENTS} - {"abort"}:
        assert durations.length(POOL, {verb}, None) == Length(TYPICAL[EVENTS[verb]], known=False)
    assert durations.length(POOL, {"provide", "clean"}, None).seconds == TYPICAL["clean"]


def test_what_was_seen() -> None:
    """One deployment counts beside what the operator expects, several in its place."""
    durations = Durations()
    assert durations.length(POOL, {"active"}, 600.0) == Length(600.0, known=True)
    worked(durations, 300.0, lease(0))
    assert durations.length(POOL, {"deploy"}, None) == Length(300.0, known=True)
    assert durations.length(POOL, {"active"}, 600.0).seconds == 600.0
    for number in range(1, ENOUGH):
        worked(durations, 300.0 + number, lease(number))
    assert durations.length(POOL, {"active"}, 600.0) == Length(304.0, known=True)
    assert not durations.length(POOL, {"clean"}, None).known
    assert not durations.length("another", {"active"}, None).known


@pytest.mark.parametrize("state", ["deploy failed", "error"])
def test_failures_teach_nothing(state: str) -> None:
    """A failure within seconds says nothing about a deployment."""
    durations = Durations()
    worked(durations, 2.0, lease(0), state=state)
    assert not durations.length(POOL, {"active"}, None).known


def test_what_began_before_the_first_look() -> None:
    """How long it has lasted is unknown."""
    durations = Durations()
    durations.look(picture(lease(0)), 0.0)
    durations.look(picture(), 5.0)
    assert not durations.length(POOL, {"active"}, None).known


def test_memory_is_bounded() -> None:
    """Names of pools come from the fields of nodes: the oldest are forgotten."""
    durations = Durations()
    for number in range(KINDS_MAX + 5):
        worked(durations, 9.0, lease(number, pool=f"rack-{number}"))
    assert not durations.length("rack-0", {"active"}, None).known
    assert durations.length(f"rack-{KINDS_MAX}", {"active"}, None).known
    assert len(durations._seen) == KINDS_MAX


@pytest.mark.parametrize(
    ("place", "room", "left", "seconds"),
    [
        (1, 1, [580.0], 580.0),
        (2, 1, [580.0], 1_180.0),
        (1, 1, [], 600.0),
        (1, 2, [580.0, 30.0], 30.0),
        (2, 2, [580.0, 30.0], 580.0),
        (3, 2, [580.0, 30.0], 630.0),
        (1, 1, [580.0, 90.0, 30.0], 580.0),
        (5, 5, [100.0] * 5, 100.0),
        (6, 5, [100.0] * 5, 700.0),
    ],
)
def test_turns(place: int, room: int, left: list[float], seconds: float) -> None:
    """Places are served as units become free; over the limit, only when it is kept again."""
    assert turn_in(place, room, left, 600.0) == seconds


def test_expected_by_pool_and_verb() -> None:
    """The rules that match come first, then the verb by any of its names, then all verbs."""
    rules = parse(
        {
            "rule": [
                {"pool": "deploy", "verbs": ["active"], "expected": "12m"},
                {"pool": "clean", "verbs": ["clean"]},
                {"pool": "rest"},
            ],
            "expected": {"all": "5m", "clean": "2h", "undeploy": "90s"},
        }
    )
    expected = {verb: rules.expected_of({}, {verb}) for verb in ("active", "clean", "deleted")}
    assert expected == {"active": 720.0, "clean": 7_200.0, "deleted": 90.0}
    assert rules.expected_of({}, {"inspect"}) == 300.0
    assert Rules.of_pool("deploy").expected_of({}, {"active"}) is None


@pytest.mark.parametrize("text", ["", "10 minutes", "0", "-1", "8d", "nan", "inf"])
def test_lengths_that_are_none(text: str) -> None:
    """They are refused when the file is read, and so is a verb that does not exist."""
    for file in ({"expected": {EVERY_VERB: text}}, {"expected": {"fly": "1m"}}):
        with pytest.raises(RulesError, match=r"expected|fly"):
            parse({"rule": [{"pool": "x"}], **file})
    with pytest.raises(RulesError):
        parse({"rule": [{"pool": "x", "expected": text}]})
