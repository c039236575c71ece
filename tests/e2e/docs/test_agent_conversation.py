"""The conversation of an agent in `docs/reference/agents.md`, typed as it stands there."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.support.server import serve

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "agents.md"
PAIR = re.compile(r"```http\n(.*?)```(?:(?!```).)*```json\n(.*?)```", re.DOTALL)
AGENT = "5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"
PART = "1e16eb4d-265d-5ad3-86d9-cb06b7401bb3"
CONSUMER = "c0000000-0000-4000-8000-000000000001"
VARIES = ("next_in", "request_id")
PLACEMENT = {"OpenStack-API-Version": "placement 1.39"}


class Message(NamedTuple):
    """A request as the page has it, and its answer."""

    method: str
    path: str
    headers: dict[str, str]
    body: str
    answer: dict[str, Any]


def messages() -> Iterator[Message]:
    """Yield the messages of the page."""
    for request, answer in PAIR.findall(PAGE.read_text()):
        head, _, body = request.partition("\n\n")
        first, *lines = head.strip().split("\n")
        method, _, path = first.partition(" ")
        headers = dict(line.split(": ", 1) for line in lines)
        yield Message(method, path, headers, body, json.loads(answer))


class Caller:
    """Plain HTTP, with a token."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token

    def __call__(
        self, method: str, path: str, body: str = "", headers: dict[str, str] | None = None
    ) -> Any:
        """Send a request; return the decoded answer, also of a refusal."""
        sent = {"Content-Type": "application/json", **(headers or {})}
        sent["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(
            self._url + path, body.encode() or None, sent, method=method
        )
        try:
            with urllib.request.urlopen(request) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            text = error.read()
        return json.loads(text) if text else None


@pytest.fixture
def callers(tmp_path: Path) -> Iterator[tuple[Caller, Caller]]:
    """Callers of one server: an operator, and the agent of the page, which is created."""
    database = tmp_path / "moorage.sqlite"
    with serve(database) as server:
        operator = Caller(server.url, Path(f"{database}.token").read_text().strip())
        operator("PUT", f"/v1/agents/{AGENT}", "{}")
        operator("PUT", "/resource_classes/CUSTOM_LICENSE", "", PLACEMENT)
        wanted = {"name": "machine-7", "role": "agent", "scope": {"agent": [AGENT]}}
        token = operator("POST", "/v1/tokens", json.dumps(wanted))["token"]
        yield operator, Caller(server.url, token)


def between(operator: Caller, message: Message, before: Message | None) -> None:
    """Do what the page says that others do before a message."""
    if message.path.endswith("/alive") and before is not None and "/report" in before.path:
        wanted = {"resource_class": "CUSTOM_LICENSE", "provider": PART, "amount": 8}
        operator("POST", f"/v1/agents/{AGENT}/desired", json.dumps(wanted))
    if "/starts/" in message.path:
        claim = {
            "allocations": {PART: {"resources": {"CUSTOM_LICENSE": 2}}},
            **{"project_id": "shop", "user_id": "alice", "consumer_type": "INSTANCE"},
            "consumer_generation": None,
        }
        operator("PUT", f"/allocations/{CONSUMER}", json.dumps(claim), PLACEMENT)


def test_the_conversation(callers: tuple[Caller, Caller]) -> None:
    """Each message of the page gets the answer that stands there."""
    operator, agent = callers
    before, kinds = None, set()
    for message in messages():
        between(operator, message, before)
        found = agent(message.method, message.path, message.body)
        for name in VARIES:
            assert (name in found) == (name in message.answer), (message.path, found)
            found.pop(name, None)
            message.answer.pop(name, None)
        for one in (found, message.answer):
            (one.get("plan") or {}).pop("at", None)
        assert found == message.answer, message
        assert message.headers["Authorization"].startswith("Bearer ")
        before = message
        kinds.add(message.path.split("/")[4])
    assert kinds == {"register", "report", "alive", "starts"}
    seen = operator("GET", f"/v1/agents/{AGENT}")
    assert (seen["readiness"], seen["parts"][0]["classes"]["CUSTOM_LICENSE"]["offered"]) == (
        "ready",
        8,
    )


def test_what_is_reserved_stays(callers: tuple[Caller, Caller]) -> None:
    """`reserved`, set through Placement, outlives reports and another desired amount; capacity is
    what is there less what is reserved.
    """
    operator, agent = callers
    before = None
    for message in messages():
        between(operator, message, before)
        agent(message.method, message.path, message.body)
        before = message
    path = f"/resource_providers/{PART}/inventories/CUSTOM_LICENSE"
    inventory = operator("GET", path, "", PLACEMENT)
    assert (inventory["total"], inventory["reserved"]) == (8, 0)
    operator("PUT", path, json.dumps({**inventory, "reserved": 3}), PLACEMENT)
    wanted = {"resource_class": "CUSTOM_LICENSE", "provider": PART, "amount": 6}
    operator("POST", f"/v1/agents/{AGENT}/desired", json.dumps(wanted))
    report = {
        "boot_id": "7f3a1f4e-0000-4000-8000-0000000000b0",
        **{"report_generation": 4, "desired_generation_seen": 2, "phase": "done"},
        "actual": {PART: {"CUSTOM_LICENSE": 6}},
    }
    agent("PUT", f"/v1/agents/{AGENT}/report", json.dumps(report))
    inventory = operator("GET", path, "", PLACEMENT)
    assert (inventory["total"], inventory["reserved"]) == (6, 3)
    asked = "/allocation_candidates?resources=CUSTOM_LICENSE:{}"
    for amount, fits in ((1, True), (2, False)):  # two are used, three are reserved
        found = operator("GET", asked.format(amount), "", PLACEMENT)
        assert bool(found["provider_summaries"]) is fits
