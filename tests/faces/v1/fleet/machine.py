"""A machine whose agent sends what a test wants over HTTP, and what the server has stored of it."""

import itertools
import re
from typing import Any, NamedTuple
from uuid import UUID, uuid4, uuid5

from tests.faces.v1.native import Native, Response

PAGES = "CUSTOM_HUGEPAGES_2MB"
FAILURE = {"code": "x", "message": "y", "attempts": 1, "since": "2026-01-01T00:00:00Z"}
"""What an agent may report of a failure."""

PLACEMENT = {"OpenStack_API_Version": "placement 1.39"}

_numbers = itertools.count(1)


class Stored(NamedTuple):
    """What must be the same after a refusal."""

    agent: Any
    revision: str
    audited: str


class Machine:
    """One agent with a token of its own, and a part `numa0` that could have 1000 pages."""

    def __init__(self, native: Native, uuid: str | None = None) -> None:
        """Take the agent of this UUID, by default of a new one that nobody has created."""
        self.native = native
        self.uuid = uuid or str(uuid4())
        self.host = f"host-{next(_numbers)}"
        self.part = self.part_id("numa0")
        self.boot = "boot-1"
        self.generation = 0
        wanted = {"name": self.host, "role": "agent", "scope": {"agent": [self.uuid]}}
        self.token: str = native.ask("POST", "/v1/tokens", wanted).body["token"]

    def part_id(self, name: str) -> str:
        """Return the UUID of a part."""
        return str(uuid5(UUID(self.uuid), name))

    # What the agent sends; an argument replaces or adds a member of the body.

    def send(self, method: str, word: str, body: Any, token: str | None = None) -> Response:
        """Send a request to an address of this agent, by default with its own token."""
        path = f"/v1/agents/{self.uuid}/{word}".rstrip("/")
        return self.native.ask(method, path, body, token=token or self.token)

    def register_body(self, **members: Any) -> dict[str, Any]:
        """Return a valid register."""
        part = {"provider": self.part, "name": "numa0", "classes": {PAGES: {"eligible": 1_000}}}
        body = {"boot_id": self.boot, "facts": {"hostname": self.host}, "parts": [part]}
        return {**body, **members}

    def register(self, token: str | None = None, **members: Any) -> Response:
        """Register the machine."""
        return self.send("POST", "register", self.register_body(**members), token)

    def report_body(self, **members: Any) -> dict[str, Any]:
        """Return the next report: 100 pages are there."""
        body = {
            "boot_id": self.boot,
            "report_generation": self.generation + 1,
            "desired_generation_seen": 1,
            "phase": "done",
            "actual": {self.part: {PAGES: 100}},
        }
        return {**body, **members}

    def report(self, token: str | None = None, **members: Any) -> Response:
        """Report what is there; an accepted report counts."""
        answer = self.send("PUT", "report", self.report_body(**members), token)
        if answer.status == 200:
            self.generation = answer.body["report_generation"]
        return answer

    def alive_body(self, **members: Any) -> dict[str, Any]:
        """Return a sign of life."""
        return {"boot_id": self.boot, "report_generation": self.generation, **members}

    def alive(self, token: str | None = None, **members: Any) -> Response:
        """Send a sign of life."""
        return self.send("POST", "alive", self.alive_body(**members), token)

    def start(self, consumer: str, query: str | None = None, token: str | None = None) -> Response:
        """Ask whether a consumer may start."""
        asked = f"?boot_id={self.boot}" if query is None else query
        return self.send("GET", f"starts/{consumer}{asked}", None, token)

    # What operators do.

    def operate(self, word: str, token: str | None = None, **members: Any) -> Response:
        """Change the policy or what is desired, as the administrator."""
        return self.send("POST", word, members, token or self.native.secret)

    def put(self, token: str | None = None, **members: Any) -> Response:
        """Create or change the agent, as the administrator."""
        return self.send("PUT", "", members, token or self.native.secret)

    def offering(self) -> "Machine":
        """Let 100 pages be offered; return this machine."""
        for answer in (
            self.put(),
            self.register(),
            self.operate("desired", resource_class=PAGES, amount=100),
            self.report(),
        ):
            assert answer.status == 200, answer
        assert self.shown()["readiness"] == "ready"
        return self

    def decommissioned(self) -> "Machine":
        """End the agent; return this machine."""
        for word in ("expunge", "decommission"):
            assert self.operate(word).status == 200
        return self

    def claim(self, pages: int) -> str:
        """Claim pages of the machine for a new consumer; return it."""
        consumer = str(uuid4())
        body = {
            "allocations": {self.part: {"resources": {PAGES: pages}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        answer = self.native.ask("PUT", f"/allocations/{consumer}", body, **PLACEMENT)
        assert answer.status == 204, answer
        return consumer

    def shown(self) -> Any:
        """Return the agent as operators see it; None: there is none."""
        answer = self.native.ask("GET", f"/v1/agents/{self.uuid}")
        assert answer.status in (200, 404), answer
        return answer.body if answer.status == 200 else None

    def stored(self) -> Stored:
        """Return everything that a refused request must leave as it is."""
        agent = self.shown()
        if agent is not None:
            del agent["heard_at"]  # passes by itself
        metrics = self.native.ask("GET", "/metrics").body.decode()
        found = re.search(r"^moorage_revision (\S+)$", metrics, re.MULTILINE)
        assert found is not None
        (entry,) = self.native.ask("GET", "/v1/audit?limit=1").body["entries"]
        return Stored(agent, found[1], entry["id"])


def check_refused(
    machine: Machine, answer: Response, before: Stored, status: int, code: str, *words: str
) -> None:
    """A request was refused with this status and code; its message has these words.

    Nothing was stored: compare with what was there before.
    """
    assert (answer.status, answer.body["code"]) == (status, code), answer
    assert answer.body["status"] == status
    for word in words:
        assert word in answer.body["detail"], answer.body["detail"]
    assert machine.stored() == before
