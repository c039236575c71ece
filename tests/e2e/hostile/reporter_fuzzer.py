"""Requests of reporters: valid ones, ones with one thing wrong, and nonsense, with any token.

Tokens from the answers are used again, so that many requests succeed. Nodes are few: among them are
the parts of a machine that an agent manages.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from tests.e2e.support.chance import Chance
from tests.e2e.support.hostile import TEXTS
from tests.e2e.support.peer import Answer, head

GROUPS = ["g", "h"]
MEMBERS = ["a", "b", "c"]
INSTANCES = [str(UUID(int=n)) for n in range(1, 50)]
NODES = [str(UUID(int=n)) for n in range(100, 112)]
CLASSES = ["VCPU", "CUSTOM_BAREMETAL", "CUSTOM_GOLD"]
TRAITS = ["CUSTOM_A", "CUSTOM_B", "STORAGE_DISK_SSD", "OWNER_NOVA"]
PIECES = ["%00", "%ff", "%2F", "..", "%2e%2e", "x" * 300, ";", "*", "G", "g,h"]


class Sent(NamedTuple):
    """One request: the route, the owner of its token, and the bytes.

    `group` is the group that it is about; None: the address or the body is not what it seems.
    """

    what: str
    caller: str
    group: str | None
    member: str
    bytes: bytes


@dataclass
class Known:
    """The tokens of callers by name; what the answers have shown: tokens of members."""

    tokens: dict[str, str]
    machine: list[str]
    """Providers that an agent manages."""
    members: dict[tuple[str, str], str] = field(default_factory=dict)
    codes: set[str] = field(default_factory=set)
    """Codes of refused nodes."""

    def learn(self, sent: Sent, answer: Answer) -> None:
        """Remember what an answer shows."""
        if answer.status != 200 or not answer.body:
            return
        said = answer.json()
        if sent.what.startswith("PUT") and "token" in said:
            self.members[sent.group or "", sent.member] = said["token"]
        if sent.what == "POST /v1/reports":
            self.codes.update(said["codes"])


class ReporterFuzzer(Chance):
    """Makes requests, one after the other, from one random source."""

    WRONG = 0.15

    def __init__(self, seed: object, known: Known) -> None:
        super().__init__(seed)
        self._known = known
        self._group = self._member = ""
        one = "/v1/reporter-groups/{name}"
        self.routes: list[tuple[str, str, Callable[[], Any] | None]] = [
            ("GET", "/v1/reporter-groups", None),
            ("GET", one, None),
            ("DELETE", one, None),
            *[("PUT", f"{one}/members/{{member}}", self._joining)] * 4,
            ("DELETE", f"{one}/members/{{member}}", None),
            ("PUT", f"{one}/observed", self._observed),
            ("GET", f"{one}/pins", None),
            ("POST", f"{one}/pins", self._pins),
            ("GET", f"{one}/nodes", None),
            ("GET", f"{one}/ghosts", None),
            *[("POST", "/v1/reports", self._report)] * 10,
        ]

    def next(self) -> Sent:
        """Return the next request."""
        choice = self.choice
        method, template, body = choice.choice(self.routes)
        self._group, self._member = choice.choice(GROUPS), choice.choice(MEMBERS)
        caller = choice.choice([*self._known.tokens, *[self._group] * 9])
        target = template.replace("{name}", self._group).replace("{member}", self._member)
        group: str | None = self._group
        if self._rarely():
            at = choice.randrange(len("/v1/"), len(target) + 1)
            target, group = target[:at] + choice.choice(PIECES) + target[at:], None
        content = self._content(body)
        if template == "/v1/reports" and not self._is_about(content):
            group = None
        if method == "GET" and self._rarely(0.3):
            target += f"?limit={choice.choice([1, 2, 1000, 0, 'x'])}&cursor={choice.choice(NODES)}"
        headers = [
            ("X-Auth-Token", self._known.tokens[caller]),
            ("Content-Type", "application/json"),
        ]
        sent = head(method, target, headers, content)
        return Sent(f"{method} {template}", caller, group, self._member, sent)

    def _is_about(self, content: bytes | None) -> bool:
        """Return whether a body is surely a report of the group."""
        try:
            return bool(json.loads(content or b"")["group"] == self._group)
        except (ValueError, KeyError, TypeError, RecursionError):
            return False

    def _joining(self) -> dict[str, Any]:
        choice = self.choice
        instance = INSTANCES[MEMBERS.index(self._member)]
        if self._rarely(0.05):
            instance = choice.choice(INSTANCES)
        body: dict[str, Any] = {"instance": instance, "ttl": choice.choice([5, 60])}
        if self._rarely(0.3):
            codes = {"not_owner": choice.randrange(9)}
            body["last_pass"] = {"age": 1.5, "nodes": choice.randrange(9), "refused": codes}
        if self._rarely(0.2):
            body["renew"] = True
        return body

    def _observed(self) -> dict[str, Any]:
        seen = [name for name in ("one", "two", "three") if self._rarely(0.6)]
        at = f"2026-01-01T00:{self.choice.randrange(60):02}:00Z"
        return {"members": seen, "seen_at": at, "error": "away" if self._rarely(0.2) else ""}

    def _pins(self) -> dict[str, Any]:
        nodes = self.choice.sample(NODES, self.choice.randrange(1, 4))
        return {"nodes": nodes, "member": self.choice.choice([*MEMBERS, None, None])}

    def _report(self) -> dict[str, Any]:
        choice = self.choice
        token = self._known.members.get((self._group, self._member), "1.1")
        count = choice.randrange(6)
        return {
            "group": self._group,
            "member": self._member,
            "token": token,
            "mode": choice.choice(["owner", "owner", "owner", "beside_nova"]),
            "nodes": [self._node(uuid) for uuid in choice.sample(NODES, count)]
            + [self._node(choice.choice(self._known.machine)) for _ in range(self._rarely(0.3))],
        }

    def _node(self, uuid: str) -> dict[str, Any]:
        choice = self.choice
        if self._rarely(0.2):
            return {"uuid": uuid, "seen": "absent"}
        name = choice.choice(TEXTS) if self._rarely() else f"node-{uuid}"
        node: dict[str, Any] = {"uuid": uuid, "name": name}
        if self._rarely(0.8):
            total = choice.randrange(1, 9)
            sizes = {"total": total, "reserved": choice.randrange(total + 1)}
            node["inventories"] = dict.fromkeys(choice.sample(CLASSES, choice.randrange(3)), sizes)
        if self._rarely(0.8):
            most = len(TRAITS) if self._rarely(0.1) else len(TRAITS) - 1
            node["traits"] = choice.sample(TRAITS[:most], choice.randrange(3))
        if self._rarely(0.5):
            node["aggregates"] = choice.sample(INSTANCES, choice.randrange(3))
        return node
