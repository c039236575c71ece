"""Each kind of client waits as it can."""

import pytest

from moorage.integrations.ironic.clients import (
    HOLD_SECONDS,
    PAUSES,
    RETRY_AFTER_MAX,
    TRIES,
    policy_of,
)
from moorage.integrations.ironic.rules import parse
from moorage.integrations.provisioning.rules import RulesError

SDK = "openstacksdk/4.22.0 keystoneauth1/5.18.1 python-requests/2.34.2 CPython/3.11.7"


@pytest.mark.parametrize(
    ("user_agent", "hold", "retry_after"),
    [
        (SDK, HOLD_SECONDS, "fitting"),
        ("nova-compute keystoneauth1/5.18.1 python-requests/2.34.2", HOLD_SECONDS, "fitting"),
        ("python-ironicclient", HOLD_SECONDS, "none"),
        ("baremetal-operator gophercloud/v2.1.0", 0.5, "none"),
        ("Gophercloud/1.0", 0.5, "none"),
        ("curl/7.88.1", HOLD_SECONDS, "none"),
        ("", HOLD_SECONDS, "none"),
    ],
)
def test_defaults(user_agent: str, hold: float, retry_after: str) -> None:
    """The headers that real clients send lead to the policy that was measured with them."""
    policy = policy_of(user_agent)
    assert (policy.hold, policy.retry_after) == (hold, retry_after)


@pytest.mark.parametrize(
    ("latest", "pause"), [(None, 10), (0.0, 1), (125.0, 1), (126.0, 2), (300.0, 36), (1e6, 300)]
)
def test_pauses_fit_the_estimate(latest: float | None, pause: int) -> None:
    """All tries and pauses of openstacksdk together are as long as the estimate, within bounds."""
    policy = policy_of(SDK)
    assert policy.pause_of(latest) == pause
    if latest is not None and pause < RETRY_AFTER_MAX:
        assert TRIES * policy.hold + PAUSES * pause >= latest


def test_places_outlast_pauses() -> None:
    """A ticket keeps its place for three rounds of its client, and for 90 seconds at least."""
    assert policy_of("curl").patience == 90
    assert policy_of(SDK).patience == 3 * (HOLD_SECONDS + RETRY_AFTER_MAX)


def test_an_operators_own_lines_come_first() -> None:
    """The first line that matches counts."""
    rules = parse(
        {
            "rule": [{"pool": "x"}],
            "client": [
                {"user_agent": "mine/*", "hold": 3, "retry_after": 7},
                {"user_agent": "*", "retry_after": "fitting"},
            ],
        }
    )
    mine, others = policy_of("MINE/1", rules.clients), policy_of("curl", rules.clients)
    assert (mine.hold, mine.pause_of(100.0)) == (3, 7)
    assert others.retry_after == "fitting"


@pytest.mark.parametrize(
    "line",
    [
        {"user_agent": ""},
        {"user_agent": "x", "hold": 56},
        {"user_agent": "x", "retry_after": 0},
        {"user_agent": "x", "retry_after": "often"},
        {"user_agent": "x", "holds": 1},
    ],
)
def test_lines_that_are_not_valid(line: dict[str, object]) -> None:
    """They are refused when the file is read."""
    with pytest.raises(RulesError):
        parse({"rule": [{"pool": "x"}], "client": [line]})
