"""Who may speak for a machine: its own token; what that may do, and what an enroller may."""

from typing import Any
from uuid import uuid4

import pytest

from tests.faces.v1.fleet.machine import PAGES, PLACEMENT, Machine, check_refused
from tests.faces.v1.native import Native

UNKNOWN = str(uuid4())


def tokens(native: Native, machine: Machine) -> dict[str, str]:
    """Return tokens that may not speak for a machine, by the reason in the answer."""
    other = Machine(native)
    wanted: dict[str, Any] = {"name": "e", "role": "enroller", "scope": {"group": ["default"]}}
    enroller = native.ask("POST", "/v1/tokens", wanted).body["token"]
    return {
        f"The agent '{machine.uuid}' is not in the scope": other.token,
        "role 'enroller' may not": enroller,
        "needs the role": native.token("reader", name=f"reader-{machine.host}"),
    }


@pytest.mark.parametrize("word", ["register", "report", "alive"])
def test_a_token_of_somebody_else(native: Native, word: str) -> None:
    """403 for others, 401 without a valid token: neither can speak for a machine."""
    machine = Machine(native).offering()
    refused = tokens(native, machine)
    before = machine.stored()
    send = {"register": machine.register, "report": machine.report, "alive": machine.alive}[word]
    for reason, token in refused.items():
        check_refused(machine, send(token=token), before, 403, "forbidden", reason)
    answer = send(token="moorage_unknown")
    check_refused(machine, answer, before, 401, "unauthenticated", "valid token")


def test_what_a_token_of_an_agent_may_not_do(native: Native) -> None:
    """It speaks for its machine only: no other agent, no operator's change, no Placement API."""
    machine, other = Machine(native).offering(), Machine(native).offering()
    before = machine.stored()
    for word, body in (("drain", {}), ("desired", {"resource_class": PAGES, "amount": 1})):
        answer = machine.send("POST", word, body)
        check_refused(machine, answer, before, 403, "forbidden", "role 'agent' may not")
    answer = native.ask("GET", f"/v1/agents/{other.uuid}", token=machine.token)
    check_refused(machine, answer, before, 403, "forbidden", other.uuid)
    answer = other.start(UNKNOWN, token=machine.token)
    check_refused(machine, answer, before, 403, "forbidden", other.uuid)
    answer = native.ask("GET", "/v1/agents", token=machine.token)
    check_refused(machine, answer, before, 403, "forbidden", "role 'agent' may not")
    placement = native.ask("GET", "/resource_providers", token=machine.token, **PLACEMENT)
    assert placement.status == 403


def test_an_enroller_of_another_group(native: Native) -> None:
    """It can only enroll agents into its own group."""
    wanted = {"name": "enroller", "role": "enroller", "scope": {"group": ["a"]}}
    enroller = native.ask("POST", "/v1/tokens", wanted).body["token"]
    machine = Machine(native)
    before = machine.stored()
    answer = machine.operate("enroll", enroller, group="b")
    check_refused(machine, answer, before, 403, "forbidden", "'b' is not in the scope", "a")
    answer = machine.register(token=enroller)
    check_refused(machine, answer, before, 403, "forbidden", "role 'enroller' may not")
