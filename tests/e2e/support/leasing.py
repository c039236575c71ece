"""What tests of pools share: requests, what clients know, and what the change rows say about it."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.support.peer import Answer, Peer

LIMIT = 5
TTL = 1.0
POOL = "ci/install"
NOAUTH = ("--auth", "noauth2")
Token = tuple[int, ...]


def token_of(text: str) -> Token:
    """Return a token as numbers, which can be compared."""
    return tuple(map(int, text.split(".")))


def wish(key: str, units: int = 1, **more: Any) -> dict[str, Any]:
    """Request units with a short TTL."""
    return {"needs": [{"pool": POOL, "units": units}], "key": key, "ttl": TTL, **more}


async def pool_made(url: str, limit: int = LIMIT, **more: Any) -> None:
    """Create the pool."""
    async with Peer(url) as peer:
        body = {"limit": limit, "pacing": None, **more}
        made = await peer.call("PUT", f"/v1/pools/{POOL}", body)
        assert made.status in (200, 201), made


async def asked(url: str, body: dict[str, Any], wait: float = 0) -> Any:
    """Request a lease on a separate connection; return the lease or ticket."""
    async with Peer(url) as peer:
        answer = await peer.call("POST", f"/v1/leases?wait={wait}", body)
        assert answer.status in (200, 201, 202), answer
        return answer.json()


async def called(url: str, method: str, path: str, body: Any = None) -> Answer:
    """Make one call on a separate connection."""
    async with Peer(url) as peer:
        return await peer.call(method, path, body)


@dataclass
class Book:
    """What clients know: their granted leases, and their unanswered requests."""

    granted: dict[str, tuple[str, str]] = field(default_factory=dict)
    """(lease, token) by key."""
    released: set[str] = field(default_factory=set)
    """Keys of leases whose release was acknowledged."""
    open_keys: dict[int, str] = field(default_factory=dict)
    """The key of each client whose request was not answered."""
    away: int = 0
    """Answers that reported that the database was away."""
    enough: asyncio.Event = field(default_factory=asyncio.Event)
    target: int = 0


POOLS = tuple(f"{POOL}-{n}" for n in range(3))
"""Any of which will do for a `Chooser`."""


class Client:
    """Requests, waits, holds and releases, one after the other, until stopped."""

    def __init__(self, number: int, url: str, book: Book, choice: random.Random) -> None:
        self.number = number
        self.peer = Peer(url)
        self.book = book
        self.choice = choice

    async def work(self) -> None:
        """Continue; first repeat the unanswered request. Raises NoAnswer, ConnectionError."""
        try:
            while not self.book.enough.is_set():
                await self._one()
        finally:
            await self.peer.close()

    def wish(self, key: str) -> dict[str, Any]:
        """Return the request with this key."""
        return wish(key, 2 if key.endswith(("1", "2")) else 1)

    async def _one(self) -> None:
        book = self.book
        key = book.open_keys.setdefault(self.number, f"{self.number}-{self.choice.random()}")
        lease = await self._told("POST", "/v1/leases?wait=3", self.wish(key))
        if lease["state"] == "granted" and not await self._confirmed(lease):
            return  # with the same key: it waits again at its place, or has ended
        if lease["state"] == "granted":
            known = book.granted.setdefault(key, (lease["id"], lease["token"]))
            assert known == (lease["id"], lease["token"]), "a repeated request has another lease"
            if len(book.granted) >= book.target:
                book.enough.set()
        if lease["state"] == "waiting":
            return  # with the same key, so that the ticket keeps its place
        if self.choice.random() < 0.9 and lease["state"] == "granted":
            await self._told("DELETE", f"/v1/leases/{lease['id']}?token={lease['token']}")
            book.released.add(key)
        del book.open_keys[self.number]

    async def _confirmed(self, lease: Any) -> bool:
        """Renew a grant; return whether it is the holder's for its TTL: until then it may go."""
        answer = await self._answer(
            "POST", f"/v1/leases/{lease['id']}/renew", {"token": lease["token"]}
        )
        assert answer.status in (200, 409), answer
        return answer.status == 200

    async def _told(self, method: str, path: str, body: Any = None) -> Any:
        """Call until the database is there; return the lease."""
        answer = await self._answer(method, path, body)
        assert answer.status in (200, 201, 202), answer
        return answer.json()

    async def _answer(self, method: str, path: str, body: Any = None) -> Answer:
        while True:
            answer = await self.peer.call(method, path, body)
            if answer.status != 503:
                return answer
            self.book.away += 1


class Chooser(Client):
    """Asks for units of any of several pools."""

    def wish(self, key: str) -> dict[str, Any]:
        """Return the request with this key; the order of the pools depends on the key."""
        plain = super().wish(key)
        (need,) = plain.pop("needs")
        first = int(key[-1]) % len(POOLS)
        pools = POOLS[first:] + POOLS[:first]
        return {**plain, "any_of": [[{**need, "pool": pool}] for pool in pools]}


async def granted(url: str, book: Book, count: int) -> None:
    """Wait until this many more leases are granted."""
    target = len(book.granted) + count
    async with Peer(url) as peer:
        while len(book.granted) < target:
            await peer.call("GET", "/healthz")


async def history(url: str) -> list[list[dict[str, Any]]]:
    """Return the changes of leases of every revision, from the first."""
    told: dict[int, list[dict[str, Any]]] = {}
    async with Peer(url) as peer:
        after = "0.0"
        while True:
            answer = await peer.call(
                "GET", f"/v1/watch?after={after}&kinds=lease&wait=0&limit=1000"
            )
            if answer.status == 410 and after == "0.0":
                after = answer.json()["oldest"]
                assert after.split(".")[1] == "0", "the first change rows are not kept any more"
                continue
            assert answer.status == 200, answer
            page = answer.json()
            for change in page["changes"]:
                told.setdefault(change["revision"], []).append(change["value"])
            if page["next"] == after:
                return [told[revision] for revision in sorted(told)]
            after = page["next"]


def audit(revisions: list[list[dict[str, Any]]], book: Book, limit: int = LIMIT) -> int:
    """Check the whole history; return the most units that were ever occupied at once."""
    held: dict[str, int] = {}
    states: dict[str, set[str]] = {}
    keys: dict[str, set[str]] = {}
    most = 0
    for leases in revisions:
        for lease in leases:
            states.setdefault(lease["id"], set()).add(lease["state"])
            keys.setdefault(lease["key"], set()).add(lease["id"])
            units = sum(need["units"] for need in lease["needs"])
            if lease["state"] == "granted":
                assert "ended" not in states[lease["id"]], f"ended, and granted again: {lease}"
                held[lease["id"]] = units
            else:
                held.pop(lease["id"], None)
        most = max(most, sum(held.values()))
    assert most <= limit, f"{most} units were held at once"
    twice = {key: leases for key, leases in keys.items() if len(leases) > 1}
    assert not twice, f"one key, several leases: {twice}"
    _nothing_lost(states, book)
    return most


def _nothing_lost(states: dict[str, set[str]], book: Book) -> None:
    """Acknowledged grants are in the history, and no token was issued twice."""
    lost = [
        key for key, (lease, _) in book.granted.items() if "granted" not in states.get(lease, ())
    ]
    assert not lost, f"acknowledged and lost: {lost}"
    kept = [key for key in book.released if "ended" not in states[book.granted[key][0]]]
    assert not kept, f"released, and held all the same: {kept}"
    tokens = sorted(token_of(token) for _, token in book.granted.values())
    assert len(set(tokens)) == len(tokens), "a token was given out twice"


async def everything_comes_back(url: str, book: Book, limit: int = LIMIT) -> None:
    """One request for all units is granted: no slot has leaked."""
    async with Peer(url) as peer:
        answer = await peer.call("POST", "/v1/leases?wait=50", wish("all of it", limit))
        assert answer.status == 201, answer
        last = answer.json()
        assert all(token_of(last["token"]) > token_of(token) for _, token in book.granted.values())
        for lease, token in list(book.granted.values())[-10:]:
            renewed = await peer.call("POST", f"/v1/leases/{lease}/renew", {"token": token})
            assert renewed.status == 409, renewed
        assert (await peer.call("GET", f"/v1/pools/{POOL}")).json()["occupied"] == limit
        page = await peer.call("GET", f"/v1/leases?pool={POOL}&state=waiting&limit=1000")
        reasons = {one["waiting"]["code"] for one in page.json()["leases"]}
        assert reasons <= {"absent"}, "only places of clients that are gone are left"
