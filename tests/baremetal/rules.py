"""Compares Moorage's rules for Ironic with a real one: states, and the spellings it accepts."""

import json
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from moorage.integrations.ironic.provision_request import (
    FORM,
    JSON,
    AmbiguousError,
    ProvisionRequest,
    place_of,
    request_of,
)
from moorage.integrations.ironic.refusals import is_for_now, outcome_of
from moorage.integrations.ironic.states import BUSY, BUSY_FROM, EVENTS
from moorage.integrations.provisioning.unit_release import RequestOutcome
from tests.integrations.ironic.spellings import ACCEPTED
from tests.support.ironic_double.machine import EVENTS as DOUBLED
from tests.support.ironic_double.machine import TRANSITIONS, WORKING

Spelling = tuple[str, str, str | None, bytes]
"""Method, address, content type and body."""

SAID = ProvisionRequest("node-1", "manage")
UNDERSTOOD = b"requested action"
"""Part of Ironic's answer to a target that it understands, and that the node's state forbids."""

LEAST = 40
"""Fewer understood spellings mean that this test asks in a wrong way."""

MACHINE = """
import json
from ironic.common import state_machine, states
made = state_machine.machine._transitions
from ironic.common import exception
print(json.dumps({
    "locked": str(exception.NodeLocked(node="a", host="b")),
    "full": [
        str(exception.ConcurrentActionLimit(task_type="a")),
        str(exception.NoFreeConductorWorker()),
    ],
    "busy": states.UNSTABLE_STATES,
    "verbs": states.VERBS,
    "events": {state: {event: to.name for event, to in row.items()} for state, row in made.items()},
}))
"""


def check_states(programs: Path) -> None:
    """Compare busy states, verbs, and the states from which a verb makes a node busy."""
    real = _machine(programs)
    assert set(real["busy"]) == BUSY, real["busy"]
    assert {**real["verbs"], "rebuild": "rebuild"} == EVENTS, real["verbs"]
    assert is_for_now(409, real["locked"])
    assert all(outcome_of(503, one) is RequestOutcome.REFUSED for one in real["full"]), real
    for event, states in BUSY_FROM.items():
        found = {
            state
            for state, row in real["events"].items()
            if row.get(event) in BUSY and state not in BUSY
        }
        assert found == states, f"{event}: {found}"


def _machine(programs: Path) -> Any:
    done = subprocess.run([programs / "python", "-c", MACHINE], capture_output=True, check=True)
    return json.loads(done.stdout)


def check_double(programs: Path) -> None:
    """Compare the transitions of the double, from states in which no node is locked."""
    assert DOUBLED == EVENTS
    events = _machine(programs)["events"]
    for event, row in TRANSITIONS.items():
        found = {
            state: ways[event]
            for state, ways in events.items()
            if event in ways and state not in WORKING
        }
        assert found == row, f"{event}: {found}"


def check_spellings(url: str) -> int:
    """Whatever Ironic understands is recognised as the same request; return how many those are."""
    for one in ACCEPTED:
        assert _understands(url, one), f"Ironic no longer understands {one}"
    understood = [one for one in _spellings() if _understands(url, one)]
    for one in understood:
        assert _recognised(one), f"Ironic understands {one}, Moorage does not"
    assert len(understood) >= LEAST, f"only {len(understood)} spellings"
    return len(understood)


def _recognised(one: Spelling) -> bool:
    """Return whether a request is recognised, or refused because it is ambiguous."""
    method, address, content_type, body = one
    try:
        place = place_of(method, address)
        return place is not None and request_of(place, address, content_type, body) == SAID
    except AmbiguousError:
        return True


def _understands(url: str, one: Spelling) -> bool:
    method, address, content_type, body = one
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30.0)
    version = "1.90" if ".json" in address else "1.95"
    headers = {"X-OpenStack-Ironic-API-Version": version}
    if content_type is not None:
        headers["Content-Type"] = content_type
    try:
        connection.request(method, address, body or None, headers)
        answer = connection.getresponse()
        return answer.status == 202 or UNDERSTOOD in answer.read()
    finally:
        connection.close()


def _spellings() -> Iterator[Spelling]:
    """Yield the request with its node, its target and its path in all places and forms."""
    for prefix, node, target, end, method in product(
        ("/v1/nodes", "/v1/chassis/nodes", "/v1/n%6fdes", "/v1//nodes", "/v1/chassis/x/nodes"),
        ("path", "last", "query", "member"),
        ("last", "query", "member", "form"),
        ("", "/", ".json"),
        ("PUT", "put", "POST"),
    ):
        names = [prefix, *(["node-1"] if node == "path" else []), "states", "provision"]
        names += ["node-1"] if node == "last" else []
        names += ["manage"] if target == "last" else []
        query = ["node_ident=node-1"] if node == "query" else []
        query += ["target=manage"] if target == "query" else []
        members = {"node_ident": "node-1"} if node == "member" else {}
        members |= {"target": "manage"} if target in ("member", "form") else {}
        kind, body = (JSON, json.dumps(members)) if members else (None, "")
        if target == "form":
            kind, body = FORM, "&".join(f"{name}={value}" for name, value in members.items())
        address = "/".join(names) + end + (f"?{'&'.join(query)}" if query else "")
        yield method, address, kind, body.encode()
