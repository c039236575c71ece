"""Messages of agents out of bounds: refused with what is wrong, and the fleet stays readable."""

import itertools
from typing import Any
from uuid import UUID, uuid5

import pytest

from tests.faces.v1.native import Native, Response

PAGES = "CUSTOM_HUGEPAGES_2MB"

_numbers = itertools.count(1)


def registered(native: Native) -> str:
    """Create an agent and register its machine, with one part; return its UUID."""
    agent = f"{next(_numbers):08d}-eeee-4eee-8eee-eeeeeeeeeeee"
    assert native.ask("PUT", f"/v1/agents/{agent}", {}).status == 200
    part = {"provider": numa0(agent), "name": "numa0", "classes": {PAGES: {"eligible": 9}}}
    body = {"boot_id": "boot-1", "facts": {"hostname": agent}, "parts": [part]}
    answer = native.ask("POST", f"/v1/agents/{agent}/register", body)
    assert answer.status == 200, answer
    return agent


def numa0(agent: str) -> str:
    """Return the UUID of a part."""
    return str(uuid5(UUID(agent), "numa0"))


def report(native: Native, agent: str, failure: dict[str, Any], **more: Any) -> Response:
    """Send the first report of a machine, with a failure."""
    usual = {"code": "x", "message": "m", "attempts": 1, "since": "2026-01-01T00:00:00Z"}
    body = {
        "boot_id": "boot-1",
        "report_generation": 1,
        "desired_generation_seen": 0,
        "phase": "done",
        "actual": {numa0(agent): {PAGES: 0}},
        "failure": usual | failure,
    }
    return native.ask("PUT", f"/v1/agents/{agent}/report", body | more)


@pytest.mark.parametrize(
    ("failure", "more", "word"),
    [
        ({"since": "9999-12-31T23:59:59-12:00"}, {}, "9999"),
        ({"since": "0001-01-01T00:00:00+12:00"}, {}, "years 1 to"),
        ({"next_retry_in": 1e308}, {}, "next_retry_in"),
        ({"next_retry_in": 1e300}, {}, "next_retry_in"),
        ({"next_retry_in": -1}, {}, "next_retry_in"),
        ({}, {"desired_generation_seen": 1 << 64}, "desired_generation_seen"),
    ],
)
def test_a_report_cannot_store_what_cannot_be_shown(
    native: Native, failure: dict[str, Any], more: dict[str, Any], word: str
) -> None:
    """It is refused; otherwise one machine could break the list of all."""
    agent = registered(native)
    answer = report(native, agent, failure, **more)
    assert answer.status == 400, answer
    assert word in answer.body["detail"]
    assert native.ask("GET", "/v1/agents").status == 200


@pytest.mark.parametrize("since", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_every_time_of_the_calendar_is_shown(native: Native, since: str) -> None:
    """The first and the last time are shown as they were sent."""
    agent = registered(native)
    assert report(native, agent, {"since": since}).status == 200
    assert native.ask("GET", f"/v1/agents/{agent}").body["failure"]["since"] == since


def test_a_drain_cannot_end_beyond_the_calendar(native: Native) -> None:
    """Its end would be in every list of agents."""
    agent = registered(native)
    wanted = {"until": "9999-12-31T23:59:59-12:00"}
    assert native.ask("POST", f"/v1/agents/{agent}/drain", wanted).status == 400
    assert native.ask("GET", "/v1/agents").status == 200
