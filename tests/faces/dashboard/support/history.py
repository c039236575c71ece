"""A ledger at any of its revisions, from nothing but its change feed. Standard library only.

The sums are those that pages show, computed independently: from the values of the feed.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.faces.v1.native import Native

FIGURES = ("total", "offered", "used", "free")
NO_GROUP = "none"


class State:
    """The values of all objects at a revision, and sums of them."""

    def __init__(self, revision: int, values: dict[tuple[str, str], Any]) -> None:
        self.revision = revision
        self._values = values

    def _of(self, kind: str) -> Iterator[tuple[str, Any]]:
        return ((key, one) for (own, key), one in self._values.items() if own == kind and one)

    def leases(self, state: str, pool: str | None = None) -> list[tuple[str, int]]:
        """Return the ids of leases in a state, and how many units of the pool each has."""
        found = []
        for key, lease in self._of("lease"):
            needs = [one for one in lease["needs"] if pool in (None, one["pool"])]
            if needs and lease["state"] == state:
                found.append((key, sum(one["units"] for one in needs)))
        return found

    def pool(self, name: str) -> dict[str, list[int]]:
        """Return what a pool's page shows. The number of those who wait is there if any do."""
        if not (pool := self._values.get(("pool", name))):
            return {}
        granted, tickets = self.leases("granted", name), self.leases("waiting", name)
        units = sum(count for _, count in granted)
        figures = {
            "occupied": [units],
            "units": [pool["spec"]["limit"]],
            "granted": [len(granted)],
            "granted_units": [units],
            "tickets": [len(tickets)],
            "waiting_units": [sum(count for _, count in tickets)],
        }
        return {**figures, "waiting": [len(tickets)]} if tickets else figures

    def pools(self) -> dict[str, list[int]]:
        """Return what the list of pools shows: each figure of all pools, in the order of names."""
        found: dict[str, list[int]] = {}
        for name in sorted(key for key, _ in self._of("pool")):
            shown = self.pool(name)
            for figure in ("occupied", "units", "waiting"):
                found.setdefault(figure, []).extend(shown.get(figure, []))
        return {figure: counts for figure, counts in found.items() if counts}

    def _inventories(self) -> Iterator[tuple[str, str, dict[str, int]]]:
        """Yield providers and classes with the figures of each inventory."""
        for key, one in self._of("inventory"):
            provider, _, name = key.partition("/")
            offered = int((one["total"] - one["reserved"]) * one["allocation_ratio"])
            free = max(0, offered - one["used"])
            amounts = (one["total"], offered, one["used"], free)
            yield provider, name, dict(zip(FIGURES, amounts, strict=True))

    def classes(self, *, by_aggregate: bool = False) -> dict[str, list[int]]:
        """Return the sums of all inventories by class, or by class and aggregate."""
        sums: dict[str, list[int]] = {}
        for provider, name, figures in self._inventories():
            tags = self._values.get(("tags", provider)) or {"aggregates": []}
            groups = [f"@{one}" for one in tags["aggregates"] or [NO_GROUP]]
            for group in groups if by_aggregate else [""]:
                for figure, amount in figures.items():
                    sums.setdefault(f"{name}{group}.{figure}", [0])[0] += amount
        return sums

    def machines(self) -> dict[str, list[int]]:
        """Return the figures of each inventory."""
        return {
            f"{provider}/{name}.{figure}": [amount]
            for provider, name, figures in self._inventories()
            for figure, amount in figures.items()
            if figure != "free"
        }

    def fit(self, name: str, amount: int) -> dict[str, list[int]]:
        """Return how many providers meet each condition of a question for one class."""
        providers = sum(1 for _ in self._of("provider"))
        held = [figures for _, own, figures in self._inventories() if own == name]
        with_room = sum(1 for one in held if one["free"] >= amount)
        counts = {
            "exists": providers,
            f"offers {name}": len(held),
            f"admits {amount} {name} in one piece": len(held),
            f"has room for {amount} {name}": with_room,
        }
        shown = {f"{name}: {condition}": [count] for condition, count in counts.items()}
        trees = "All parts in one tree: every part is served by some provider"
        return {**shown, trees: [with_room]}


class Change(NamedTuple):
    """A value that an object has from a revision on."""

    revision: int
    kind: str
    key: str
    value: Any


class History:
    """All changes of a ledger until now."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._cursor = "1.0"
        self._changes: list[Change] = []
        self._applied = 0
        self._values: dict[tuple[str, str], Any] = {}
        self._revision = 0

    def at(self, revision: int) -> State:
        """Return the ledger as of a revision that it has reached."""
        self._read(revision)
        if revision < self._revision:
            self._applied, self._values = 0, {}
        while self._applied < len(self._changes):
            change = self._changes[self._applied]
            if change.revision > revision:
                break
            self._values[change.kind, change.key] = change.value
            self._applied += 1
        self._revision = revision
        return State(revision, self._values.copy())

    def _read(self, revision: int) -> None:
        """Read the feed until it has everything of a revision."""
        while not self._whole(revision):
            path = f"/v1/watch?after={self._cursor}&wait=0&limit=1000"
            answer = self._native.ask("GET", path)
            assert answer.status == 200, answer
            assert answer.body["next"] != self._cursor, f"there is no revision {revision} yet"
            self._changes += [
                Change(one["revision"], one["kind"], one["key"], one["value"])
                for one in answer.body["changes"]
            ]
            self._cursor = answer.body["next"]

    def _whole(self, revision: int) -> bool:
        _, reached, *within = map(int, self._cursor.split("."))
        return reached > revision or (reached == revision and not within)
