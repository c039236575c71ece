"""Each kind of client waits as it can, and reads when that is not enough."""

import pytest

from moorage.integrations.ironic.clients import (
    HOLD_SECONDS,
    PATIENCE_SECONDS_MAX,
    RETRY_AFTER_MAX,
    WAYS,
    policy_of,
)
from moorage.integrations.ironic.rules import parse
from moorage.integrations.provisioning.rules import RulesError

SDK = "openstacksdk/4.22.0 keystoneauth1/5.18.1 python-requests/2.34.2 CPython/3.11.7"
NOVA = "nova-compute keystoneauth1/5.18.1 python-requests/2.34.2"


@pytest.mark.parametrize(
    ("user_agent", "hold", "retry_after", "longest"),
    [
        (SDK, HOLD_SECONDS, "fitting", 6 * HOLD_SECONDS + 5 * RETRY_AFTER_MAX),
        (NOVA, HOLD_SECONDS, "fitting", HOLD_SECONDS),
        ("python-ironicclient", HOLD_SECONDS, "none", 6 * HOLD_SECONDS + 5 * 2),
        ("baremetal-operator gophercloud/v2.1.0", 0.5, "none", None),
        ("Gophercloud/1.0", 0.5, "none", None),
        ("curl/7.88.1", HOLD_SECONDS, "none", HOLD_SECONDS),
        ("", HOLD_SECONDS, "none", HOLD_SECONDS),
    ],
)
def test_defaults(user_agent: str, hold: float, retry_after: str, longest: float | None) -> None:
    """The headers that real clients send lead to the policy that was measured with them."""
    policy = policy_of(user_agent)
    assert (policy.hold, policy.retry_after, policy.longest_wait) == (hold, retry_after, longest)


@pytest.mark.parametrize(
    ("latest", "pause"),
    [(0.0, 1), (20.0, 1), (21.0, 16), (100.0, 75), (300.0, 225), (1e6, RETRY_AFTER_MAX)],
)
def test_pauses_fit_the_estimate(latest: float, pause: int) -> None:
    """A pause is shorter than the estimate; it is short if the next request is held for as long."""
    assert policy_of(SDK).pause_of(latest, waits=True) == pause


@pytest.mark.parametrize("late", [0.5, 1.0, 1.25, 1.5])
@pytest.mark.parametrize("lasts", [30.0, 60.0, 80.0, 81.0, 150.0, 300.0, 600.0, 900.0, 1_200.0])
def test_patience_lasts(lasts: float, late: float) -> None:
    """A client with six tries is there when its turn comes, also if that comes later than said.

    The estimate is renewed at each try; what is overdue is believed to last a quarter more.
    """
    policy, clock = policy_of(SDK), 0.0
    turn = min(lasts * late, policy.longest_wait or 0)
    for _ in range(int(policy.tries or 0)):
        if turn <= (clock := clock + policy.hold):
            break
        clock += policy.pause_of(max(lasts - clock, lasts / 4), waits=True) or 0
    assert turn <= clock or clock > 1_600, f"it gave up after {clock} s"
    assert clock - turn <= lasts, "the unit was free for too long"


def test_without_an_estimate() -> None:
    """Who has a place in line waits as long as it can; who has none, asks again soon."""
    policy = policy_of(SDK)
    assert policy.pause_of(None, waits=True) == RETRY_AFTER_MAX
    assert policy.pause_of(None) == 10
    assert policy_of("python-ironicclient").pause_of(None, waits=True) is None


@pytest.mark.parametrize(
    ("user_agent", "latest", "says"),
    [
        (SDK, 1_600.0, ""),
        (SDK, 1_700.0, "gives up after about 1620 s unless baremetal_status_code_retries is set"),
        (SDK, None, "gives up after about 1620 s"),
        ("python-ironicclient", 100.0, ""),
        ("python-ironicclient", 600.0, "gives up after about 130 s"),
        (NOVA, 100.0, "gives up now unless status_code_retries is set"),
        ("curl/7.88.1", 100.0, "A client that asks once gives up now"),
        ("gophercloud", None, ""),
    ],
)
def test_advice(user_agent: str, latest: float | None, says: str) -> None:
    """A client that would give up reads how long it waits, and what waits longer."""
    advice = policy_of(user_agent).advice(latest)
    assert says in advice
    assert advice.endswith(WAYS) if says else not advice


def test_places_outlast_pauses() -> None:
    """A ticket keeps its place for three rounds of its client, and for 90 seconds at least."""
    assert policy_of("curl").patience == 90
    assert policy_of(SDK).patience == 3 * (HOLD_SECONDS + RETRY_AFTER_MAX)
    table = {"user_agent": "x", "hold": 3_600}
    own = parse({"rule": [{"pool": "x"}], "client": [table]}).clients
    assert policy_of("x", own).patience == PATIENCE_SECONDS_MAX


def test_an_operators_own_lines_come_first() -> None:
    """The first line that matches counts."""
    rules = parse(
        {
            "rule": [{"pool": "x"}],
            "client": [
                {"user_agent": "mine/*", "hold": 3, "retry_after": 7, "tries": 3},
                {"user_agent": "*", "retry_after": "fitting"},
            ],
        }
    )
    mine, others = policy_of("MINE/1", rules.clients), policy_of("curl", rules.clients)
    assert (mine.hold, mine.pause_of(100.0), mine.longest_wait) == (3, 7, 23)
    assert (others.retry_after, others.longest_wait) == ("fitting", None)


@pytest.mark.parametrize(
    "line",
    [
        {"user_agent": ""},
        {"user_agent": "x", "hold": 3_601},
        {"user_agent": "x", "tries": 0},
        {"user_agent": "x", "retry_after": 0},
        {"user_agent": "x", "retry_after": "often"},
        {"user_agent": "x", "holds": 1},
    ],
)
def test_lines_that_are_not_valid(line: dict[str, object]) -> None:
    """They are refused when the file is read."""
    with pytest.raises(RulesError):
        parse({"rule": [{"pool": "x"}], "client": [line]})
