"""The contract between Ironic and its double: to the same requests, both give the same answers.

`make baremetal` sends the steps to a real Ironic and compares its answers with RECORDED, and
`make test` sends them to the double. `make baremetal ARGS=--record` records the answers again.
Standard library only: it runs in the environment of the clients, too.
"""

import json
import re
import time
from collections.abc import Iterator
from difflib import unified_diff
from http.client import HTTPConnection, HTTPResponse
from typing import Any, Protocol
from urllib.parse import urlsplit

from tests.baremetal.contract_steps import STEPS, Ask, Restart, Settle, uuid_of
from tests.support.ironic import ROOT, Ironic, Setup

RECORDED = ROOT / "tests/support/ironic_double/recorded.txt"

SETUP = Setup(
    nodes=0,
    delays={"deploy": "1", "bios": "3"},
    max_concurrent_deploy=2,
    options={
        "DEFAULT": {
            f"enabled_{kind}_interfaces": "fake" for kind in ("inspect", "rescue", "vendor")
        },
        # A request for a locked node is refused at once, without waiting for the lock.
        "conductor": {"node_locked_retry_attempts": "1"},
    },
)
"""The real Ironic that the double resembles; work takes long enough for the requests meanwhile."""

PAUSE_SECONDS = 0.05
SETTLE_SECONDS = 60.0
ANSWER_SECONDS = 30.0

MOVED = re.compile(
    r'Node (\S+) moved to provision state "([^"]*)" from state "([^"]*)"; '
    r'target provision state is "([^"]*)"'
)
MASKS = (
    (re.compile(r"req-[0-9a-f-]{36}"), "REQUEST"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00)?"), "TIME"),
    (re.compile(r'"(driver_internal_info|agent_[a-z]+)": \{.*?\}(?=, ")'), r'"\1": "INTERNAL"'),
)
"""What differs from run to run; the driver's internal notes are nobody's contract."""
RANGE = ("", "minimum-", "maximum-")
FRAMING = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})
"""Headers of the transport: two servers may frame the same answer in different ways."""

WORDS = {
    "versions": frozenset({f"x-openstack-ironic-api-{kind}version" for kind in RANGE}),
    "range": frozenset({f"x-openstack-ironic-api-{kind}version" for kind in RANGE if kind}),
    "usual": frozenset({"date", "server", "openstack-request-id", "x-openstack-request-id"}),
}
"""Headers that come together; their values are not compared."""


class World(Protocol):
    """An Ironic, real or not, to which the steps are sent."""

    url: str

    def settle(self, node: str) -> None:
        """Wait until nothing works on a node."""

    def restart(self) -> None:
        """Kill it and start it again."""

    def moves(self, node: str) -> list[str]:
        """Return all states that a node has entered until now, with the target of each."""


class RealWorld:
    """A real Ironic; which states a node has entered is in its log."""

    def __init__(self, ironic: Ironic) -> None:
        self.url = ironic.url
        self._ironic = ironic

    def settle(self, node: str) -> None:
        """Ask until no work is under way. Raises AssertionError if that takes too long."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            found = self._ironic.send("GET", f"/v1/nodes/{node}")[1]
            if found["reservation"] is None and not found["provision_state"].endswith("ing"):
                return
            # Ironic has no event to wait for: it is asked again, as its clients do.
            self._ironic.pause(PAUSE_SECONDS)
        raise AssertionError(f"{node} is still {found['provision_state']}")

    def restart(self) -> None:
        """Kill all its processes, as a crash would."""
        self._ironic.kill()
        self._ironic.start()

    def moves(self, node: str) -> list[str]:
        """Read its log."""
        found = MOVED.findall(self._ironic.log.read_text())
        return [f"{state} (target {goal})" for one, state, _, goal in found if one == uuid_of(node)]


def answers(world: World) -> Iterator[str]:
    """Send all steps; yield a paragraph for each."""
    seen: dict[str, int] = {}
    for step in STEPS:
        match step:
            case Ask():
                yield f"{step}\n{_answer(world.url, step)}\n"
            case Settle(node):
                world.settle(node)
                moves = world.moves(node)
                new, seen[node] = moves[seen.get(node, 0) :], len(moves)
                yield f"{node} enters: {', '.join(new)}\n"
            case Restart():
                world.restart()
                yield "Ironic is killed and started again\n"


def compare(world: World) -> list[str]:
    """Return the differences between the answers of an Ironic and the recorded ones, as lines."""
    found = "\n".join(answers(world)).splitlines()
    return list(unified_diff(RECORDED.read_text().splitlines(), found, "recorded", "found", n=3))


def _answer(url: str, step: Ask) -> str:
    place = urlsplit(url).netloc
    connection = HTTPConnection(place, timeout=ANSWER_SECONDS)
    try:
        connection.request(step.method, step.path, step.body, step.headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    shown = " ".join([str(answer.status), *_headers(answer)])
    return _masked(f"{shown}\n{_body(text)}".rstrip(), place)


def _headers(answer: HTTPResponse) -> Iterator[str]:
    """Yield the headers in order; the usual ones in one word, the values of some."""
    names = {name.lower() for name, _ in answer.getheaders()} - FRAMING
    for word, meant in WORDS.items():
        if meant <= names:
            names -= meant
            yield word
    for name in sorted(names):
        yield f"{name}={answer.headers[name]}"


def _body(text: str) -> str:
    """Return a body with its members in order; an error as the text inside of it."""
    if not text:
        return ""
    members: Any = json.loads(text)
    if isinstance(members, dict) and members.keys() == {"error_message"}:
        return f"error {json.dumps(json.loads(members['error_message']), sort_keys=True)}"
    return json.dumps(members, sort_keys=True)


def _masked(text: str, place: str) -> str:
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text.replace(place, "IRONIC")


def record() -> int:
    """Write down what a real Ironic answers; return the number of steps."""
    with Ironic(None, SETUP) as ironic:
        RECORDED.write_text("\n".join(answers(RealWorld(ironic))))
    return len(STEPS)


def check_contract() -> int:
    """Compare a real Ironic with what is recorded; return the number of steps."""
    with Ironic(None, SETUP) as ironic:
        differences = compare(RealWorld(ironic))
    assert not differences, "\n".join(differences)
    return len(STEPS)
