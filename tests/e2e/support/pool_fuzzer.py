"""Requests to pools and leases, by the native API and as clients of Boskos and the lease proxy.

Valid ones, ones with one thing wrong, and nonsense. Values from the answers (lease ids, tokens,
names of slots) are used again, so that many requests succeed.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.e2e.support.chance import Chance
from tests.e2e.support.hostile import TEXTS, garbled, hostile, written
from tests.e2e.support.peer import Answer, head

POOLS = ["a", "b", "region/one", "slow", "d1", "d2", "d3", "d4"]
WISHED = POOLS[:4]
"""The other pools are never used, so that they can be deleted."""

TYPES = [f"t{n}" for n in range(20)]
OWNERS = ["me", "you"]
STATES = ["free", "busy", "dirty"]
REMEMBERED = 12
PIECES = ["%00", "%ff", "%c3%28", "%", "..", "%2e%2e", "x" * 3_000, "\xff", "a;b=c", "%2F", "+"]


class Sent(NamedTuple):
    """One request: the address (native, second), the kind, the bytes."""

    door: str
    what: str
    bytes: bytes


class Known:
    """What the answers have shown: (id, token) of leases, slots of the lease proxy by name, and of
    Boskos as (name, owner, state).
    """

    def __init__(self) -> None:
        self.leases: list[tuple[str, str | None]] = []
        self.slots: list[str] = []
        self.held: list[tuple[str, str, str]] = []

    def learn(self, sent: Sent, answer: Answer) -> None:
        """Remember the newest."""
        if not 200 <= answer.status < 300 or not answer.body.startswith((b"{", b"[")):
            return
        said = answer.json()
        if sent.what in ("POST /v1/leases", "POST /v1/leases/{id}/retry"):
            self.leases = [*self.leases, (said["id"], said["token"])][-REMEMBERED:]
        elif sent.what in ("/acquire", "/acquirebystate"):
            for one in said if isinstance(said, list) else [said]:
                self.held = [*self.held, (one["name"], one["owner"], one["state"])][-REMEMBERED:]
        elif sent.what == "/lease/acquire":
            self.slots = [*self.slots, *said.get("names", [])][-REMEMBERED:]


class PoolFuzzer(Chance):
    """Makes requests, one after the other, from one random source."""

    WRONG = 0.25

    def __init__(self, seed: object, known: Known) -> None:
        super().__init__(seed)
        self._known = known
        self._lease: tuple[str, str | None] = ("", None)
        lease = "/v1/leases/{id}"
        pool = "/v1/pools/{name}"
        self.native: list[tuple[str, str, Callable[[], Any] | None]] = [
            *[("PUT", pool, self._pool)] * 3,
            ("GET", pool, None),
            ("DELETE", pool, None),
            ("GET", "/v1/pools", None),
            ("POST", pool + ":pause", None),
            *[("POST", pool + ":resume", None)] * 3,
            ("GET", pool + ":report", None),
            *[("POST", "/v1/leases", self._wish)] * 8,
            ("GET", "/v1/leases", None),
            ("GET", "/v1/leases/verify", None),
            *[("GET", lease, None)] * 2,
            ("DELETE", lease, None),
            ("PATCH", lease, lambda: self._proven(hold=self._seconds())),
            *[("POST", lease + "/renew", self._proven)] * 2,
            ("POST", lease + "/retry", lambda: self._proven(key=self._key())),
            ("POST", lease + "/outcome", self._outcome),
            ("POST", lease + "/revoke", lambda: {"reason": "fuzz"}),
        ]
        self.second: list[tuple[str, Callable[[], list[tuple[str, str]]]]] = [
            *[("/acquire", self._acquire)] * 3,
            *[("/acquirebystate", self._acquire_by_state)] * 2,
            *[("/release", lambda: self._named("name", "owner", "dest"))] * 2,
            ("/update", lambda: self._named("name", "owner", "state")),
            ("/reset", self._reset),
            ("/metric", lambda: [("type", self.choice.choice(TYPES))]),
            *[("/lease/acquire", self._proxied)] * 2,
            ("/lease/release", lambda: [("name", self._slot())]),
        ]

    def next(self) -> Sent:
        """Return the next request."""
        return self._second() if self._rarely(0.4) else self._native()

    def _native(self) -> Sent:
        choice = self.choice
        method, template, body = choice.choice(self.native)
        self._lease = choice.choice(self._known.leases) if self._known.leases else ("x", None)
        content = self._content(body)
        headers = [("X-Auth-Token", "admin"), ("Content-Type", "application/json")]
        name = choice.choice(POOLS)
        target = template.replace("{name}", name).replace("{id}", self._lease[0])
        if self._rarely():
            at = choice.randrange(len("/v1/"), len(target) + 1)
            target = target[:at] + choice.choice(PIECES) + target[at:]
        target += self._query(self._pairs(template))
        return Sent("native", f"{method} {template}", head(method, target, headers, content))

    def _second(self) -> Sent:
        choice = self.choice
        path, pairs = choice.choice(self.second)
        method = choice.choice(["GET", "PUT", "HEAD"]) if self._rarely() else "POST"
        if path == "/metric" and not self._rarely():
            method = "GET"
        content = None
        if path in ("/update", "/lease/release"):
            content = written(self._wrong({"a": "b"} if path == "/update" else [self._slot()]))
            if self._rarely(0.1):
                content = garbled(choice, content)
        return Sent("second", path, head(method, path + self._query(pairs()), [], content))

    def _query(self, pairs: list[tuple[str, str]]) -> str:
        texts = [text for text in TEXTS if type(text) is str]
        while pairs and self._rarely(0.15):
            at = self.choice.randrange(len(pairs))
            value = str(hostile(self.choice)) if self._rarely(0.5) else self.choice.choice(texts)
            pairs[at] = (pairs[at][0], value[:2_000])
        if pairs and self._rarely():
            pairs.append(self.choice.choice(pairs))
        text = "&".join(f"{quote(k, safe='')}={quote(v, errors='replace')}" for k, v in pairs)
        if self._rarely():
            text += self.choice.choice(["&%ff=%fe", "&&=", "&a", "%", ";", "&wait", "\xff"])
        return f"?{text}" if text else ""

    def _pairs(self, template: str) -> list[tuple[str, str]]:
        choice = self.choice
        match template:
            case "/v1/leases":
                pairs = [("pool", choice.choice(POOLS)), ("state", "waiting"), ("limit", "10")]
                return choice.sample(pairs, choice.randrange(len(pairs)))
            case "/v1/leases/verify":
                return [("pool", choice.choice(POOLS)), ("token", self._lease[1] or "1.1.0")]
            case "/v1/leases/{id}" if self._rarely(0.3):
                return [("wait", choice.choice(["0", "0.01", "0.001"]))]
            case "/v1/pools":
                return [("limit", "3")] if self._rarely(0.5) else []
        return []

    def _seconds(self) -> float | None:
        return self.choice.choice([None, 0.001, 1, 5, 60.5])

    def _key(self) -> str:
        return f"key-{self.choice.randrange(200)}"

    def _pool(self) -> dict[str, Any]:
        choice = self.choice
        every: dict[str, Any] = {
            "ttl": choice.choice([1, 30, 60.0]),
            "hold": self._seconds(),
            "cooldown": choice.choice([0, 0.01]),
            "pacing": choice.choice([None, "auto", {"interval": 0.001, "burst": 3}]),
            "quota": choice.choice([None, 3]),
            "queue_max": choice.choice([5, 100]),
            "labels": {"of": "fuzz"},
            "on_retry": choice.choice(["keep", "requeue"]),
            "expire": choice.choice(["free", "keep"]),
            "generation": choice.choice([None, 0, 1, 2]),
        }
        kept = choice.sample(sorted(every), choice.randrange(len(every)))
        return {"limit": choice.choice([1, 5, 50]), **{name: every[name] for name in kept}}

    def _wish(self) -> dict[str, Any]:
        choice = self.choice
        pools = choice.sample(WISHED, choice.choice([1, 1, 1, 2]))
        more: dict[str, Any] = {
            "ttl": choice.choice([1, 20]),
            "hold": self._seconds(),
            "priority": choice.choice([0, 5, -5]),
            "patience": choice.choice([1, 30]),
            "force": choice.choice([False, False, True]),
            "labels": {"job": "x"},
        }
        kept = choice.sample(sorted(more), choice.randrange(3))
        needs = [{"pool": pool, "units": choice.choice([1, 1, 2])} for pool in pools]
        return {"needs": needs, "key": self._key(), **{name: more[name] for name in kept}}

    def _proven(self, **more: Any) -> dict[str, Any]:
        return {"token": self._lease[1], **more} if self._rarely(0.5) else more

    def _outcome(self) -> dict[str, Any]:
        result = self.choice.choice(["ok", "failed", "throttled"])
        return self._proven(result=result, detail="because")

    def _slot(self) -> str:
        """Return the name of a lease of the lease proxy, usually."""
        there = self._known.slots
        return self.choice.choice(there) if there and not self._rarely(0.1) else "t0-a"

    def _held(self) -> tuple[str, str, str]:
        """Return a slot of a client of Boskos, usually."""
        there = self._known.held
        one = ("t1-b", "me", "busy")
        return self.choice.choice(there) if there and not self._rarely(0.1) else one

    def _acquire(self) -> list[tuple[str, str]]:
        choice = self.choice
        pairs = [("type", choice.choice(TYPES)), ("state", choice.choice(STATES))]
        pairs += [("dest", choice.choice(STATES)), ("owner", choice.choice(OWNERS))]
        return [*pairs, ("request_id", self._key())] if self._rarely(0.5) else pairs

    def _acquire_by_state(self) -> list[tuple[str, str]]:
        every = [f"{kind}-{letter}" for kind in TYPES for letter in "abc"]
        names = ",".join(self.choice.sample(every, self.choice.choice([1, 1, 2])))
        pairs = [("state", self.choice.choice(["free", *STATES])), ("dest", "busy")]
        return [*pairs, ("owner", self.choice.choice(OWNERS)), ("names", names)]

    def _named(self, *names: str) -> list[tuple[str, str]]:
        name, owner, state = self._held()
        values = {"name": name, "owner": owner, "state": state}
        return [(name, values.get(name) or self.choice.choice(STATES)) for name in names]

    def _reset(self) -> list[tuple[str, str]]:
        expire = self.choice.choice(["1h", "1ms", "0", "1.5s", "-1s"])
        pairs = [("type", self.choice.choice(TYPES)), ("state", "busy"), ("dest", "dirty")]
        return [*pairs, ("expire", expire)]

    def _proxied(self) -> list[tuple[str, str]]:
        return [("type", self.choice.choice(TYPES)), ("count", self.choice.choice("123"))]


def complaint(sent: Sent, answer: Answer) -> str:
    """Return what is wrong with an answer; empty if it is valid."""
    if sent.door == "second":
        # The lease proxy answers every failure with 500; its body names the reason.
        told = sent.what.startswith("/lease/") and answer.body.startswith(b"Failed to ")
        return "a server error" if answer.status >= 500 and not told else ""
    if answer.status >= 500:
        return "a server error"
    if answer.status < 400 or sent.bytes.startswith(b"HEAD "):
        return ""
    if not answer.headers.get("content-type", "").startswith("application/"):
        return "" if answer.status == 400 and answer.body else "no reason"  # it is no HTTP
    said = json.loads(answer.body)
    right = said["status"] == answer.status and said["detail"].strip() and said["code"]
    return "" if right else "no reason"
