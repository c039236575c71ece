"""Every total on a page equals the sum over the ledger as of the revision that the page names.

The sums are computed from the change feed, by a model that knows nothing but its values. Meanwhile
a writer changes pools, leases, providers and allocations without a pause.
"""

import random
import re
import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from tests.faces.dashboard.browserless import Browser, Document, signed_in
from tests.faces.v1.native import Native

STATES = 500
"""Pages read on each engine."""

POOLS = ("a", "b/c", "paced")
CLASSES = ("VCPU", "MEMORY_MB")
PLACEMENT = "placement latest"


class Model:
    """The leases and inventories of a ledger as of a revision, from its change feed."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._cursor = "1.0"
        self._ahead: list[dict[str, Any]] = []
        self._values: dict[tuple[str, str], Any] = {}
        self._capacities: dict[int, dict[str, int]] = {}
        """Sums at earlier revisions: the index may be a little behind what pages read elsewhere."""
        self.revision = 0

    def reach(self, revision: int) -> None:
        """Apply all changes up to a revision, and none after it."""
        assert revision >= self.revision
        while not self._ahead or self._ahead[-1]["revision"] <= revision:
            path = f"/v1/watch?after={self._cursor}&wait=0&limit=1000"
            window = self._native.ask("GET", path).body
            self._ahead += window["changes"]
            if window["next"] == self._cursor:
                break
            self._cursor = window["next"]
        while self._ahead and self._ahead[0]["revision"] <= revision:
            change = self._ahead.pop(0)
            if change["revision"] != self.revision:
                self._capacities[self.revision] = self._capacity()
                self.revision = change["revision"]
            self._values[change["kind"], change["key"]] = change["value"]
        self.revision = revision

    def _of(self, kind: str) -> Iterator[tuple[str, Any]]:
        return ((key, one) for (own, key), one in self._values.items() if own == kind and one)

    def pool(self, name: str) -> dict[str, int]:
        """Return the sums of a pool, as its page names them."""
        sums = dict.fromkeys(
            ("occupied", "units", "granted", "granted_units", "tickets", "waiting_units"), 0
        )
        sums["units"] = self._values["pool", name]["spec"]["limit"]
        for _, lease in self._of("lease"):
            units = sum(need["units"] for need in lease["needs"] if need["pool"] == name)
            if units and lease["state"] == "granted":
                sums["granted"] += 1
                sums["granted_units"] += units
            if units and lease["state"] == "waiting":
                sums["tickets"] += 1
                sums["waiting_units"] += units
        return {**sums, "occupied": sums["granted_units"], "waiting": sums["tickets"]}

    def pools(self) -> dict[str, list[int]]:
        """Return the sums of all pools, by name, as the list of pools names them."""
        sums = [self.pool(name) for name in sorted(POOLS)]
        names = ("occupied", "units", "waiting")
        found = {name: [one[name] for one in sums] for name in names}
        found["waiting"] = [count for count in found["waiting"] if count]
        return found

    def capacity(self, revision: int) -> dict[str, int]:
        """Return the sums of all inventories at a revision, perhaps an earlier one."""
        if revision < self.revision:
            return self._capacities[max(one for one in self._capacities if one <= revision)]
        self.reach(revision)
        return self._capacity()

    def _capacity(self) -> dict[str, int]:
        sums: dict[str, int] = {}
        for key, one in self._of("inventory"):
            name = key.partition("/")[2]
            offered = int((one["total"] - one["reserved"]) * one["allocation_ratio"])
            for figure, amount in (
                ("used", one["used"]),
                ("offered", offered),
                ("total", one["total"]),
            ):
                place = f"{name}.{figure}"
                sums[place] = sums.get(place, 0) + amount
        return sums


class Writer(threading.Thread):
    """Changes everything at random, until it is stopped."""

    def __init__(self, native: Native, seed: int) -> None:
        super().__init__(daemon=True)
        self._native = native
        self._dice = random.Random(seed)
        self._ended = threading.Event()
        self._leases: list[str] = []
        self._providers: list[str] = []
        self.failure: BaseException | None = None
        self.step = 0

    def run(self) -> None:
        """Change one thing after another."""
        try:
            while not self._ended.is_set():
                self.step += 1
                self._act()
        except BaseException as error:
            self.failure = error

    def stop(self) -> None:
        """Stop, and raise what has gone wrong."""
        self._ended.set()
        self.join()
        if self.failure is not None:
            raise self.failure

    def _act(self) -> None:
        dice = self._dice
        what = dice.random()
        if what < 0.45 or not self._leases:
            names = dice.sample(POOLS, dice.choice((1, 1, 2)))
            needs = [{"pool": name, "units": dice.choice((1, 2))} for name in names]
            body = {"needs": needs, "key": f"job-{self.step}", "ttl": 3600, "patience": 3600}
            answer = self._native.ask("POST", "/v1/leases", body)
            if answer.status in {201, 202}:
                self._leases.append(answer.body["id"])
        elif what < 0.75:
            lease = self._leases.pop(dice.randrange(len(self._leases)))
            self._native.ask("DELETE", f"/v1/leases/{lease}")
        elif what < 0.8:
            limit = dice.randrange(9)
            body = {"limit": limit, "pacing": None}
            self._native.ask("PUT", f"/v1/pools/{dice.choice(POOLS)}", body)
        elif what < 0.83:
            self._native.ask("POST", f"/v1/leases/{dice.choice(self._leases)}/force", {})
        elif what < 0.9:
            self._provider()
        else:
            self._claim()

    def _provider(self) -> None:
        uuid = str(UUID(int=self._dice.randrange(20), version=4))
        total, reserved = self._dice.randrange(1, 65), self._dice.randrange(2)
        ratio = self._dice.choice((1.0, 1.5, 16.0))
        inventory = {"total": total, "reserved": min(reserved, total), "allocation_ratio": ratio}
        one = {"uuid": uuid, "name": uuid, "inventories": dict.fromkeys(CLASSES, inventory)}
        self._native.ask("POST", "/v1/providers:bulk", {"providers": [one]})

    def _claim(self) -> None:
        resources = {self._dice.choice(CLASSES): self._dice.randrange(1, 5)}
        body = {"groups": [{"resources": resources}], "project_id": "p", "user_id": "u"}
        self._native.ask("POST", "/v1/claims", body)


def figures_of(document: Document) -> dict[str, list[int]]:
    """Return the figures of a page."""
    return {
        name: [int(text.replace(",", "")) for text in texts]
        for name, texts in document.figures.items()
        if name != "resting"
    }


def bars_fit(page: str) -> bool:
    """Return whether every bar of a pool is as long as its figures say, and never too long."""
    for bar in page.split('<svg class="bar"')[1:]:
        label, _, parts = bar.partition("</svg>")[0].partition(">")
        widths = [float(one) for one in re.findall(r'x="[^"]*" width="([^"]*)"', parts)]
        if sum(widths) > 100.001:
            return False
        found = re.search(r'aria-label="(\d+) of (\d+) units', label)
        if found:
            used, units = int(found[1]), int(found[2])
            share = 100.0 if used >= max(1, units) else 100 * used / max(1, units)
            if abs(sum(widths[:1]) - share) > 0.001:
                return False
    return True


def test_totals_are_those_of_the_revision(peers: list[Native]) -> None:
    """On the list of pools, on a pool's page, and on the overview; the bars fit as well."""
    seed = random.randrange(2**32)
    native, browser = peers[0], signed_in(peers[0], "reader")
    for name in POOLS:
        assert native.ask("PUT", f"/v1/pools/{name}", {"limit": 3, "pacing": None}).status == 200
    model, writer, dice = Model(native), Writer(peers[-1], seed), random.Random(seed)
    model.reach(len(POOLS))
    writer.start()
    revisions, moved = set(), 0
    try:
        for _ in range(STATES):
            moved += check_one(browser, model, dice, seed)
            revisions.add(model.revision)
    finally:
        writer.stop()
    assert len(revisions) > STATES // 10, "the ledger has hardly changed"
    assert moved > 0, "the control: figures of an earlier revision must differ at times"


def check_one(browser: Browser, model: Model, dice: random.Random, seed: int) -> bool:
    """Compare one page; return whether the figures before its revision were others."""
    name = dice.choice(POOLS)
    path = dice.choice(("/ui", "/ui/pools", f"/ui/pools/{name}"))
    page = browser.get(path)
    assert page.status == 200, page
    assert bars_fit(page.body)
    document = page.document
    figures = figures_of(document)
    revision = int(document.revisions[0].partition(".")[2])
    model.reach(max(model.revision, revision - 1))

    def expected() -> Any:
        if path == "/ui":
            return sorted_pools(model.pools())
        if path == "/ui/pools":
            return model.pools()
        return model.pool(name)

    before = expected()
    model.reach(revision)
    found: Any = figures
    if path == "/ui":
        found = {one: sorted(figures.get(one, [])) for one in ("occupied", "units", "waiting")}
    elif path == "/ui/pools":
        found = {one: figures.get(one, []) for one in ("occupied", "units", "waiting")}
    else:
        found = {**{one: figures[one][0] for one in figures}, "waiting": figures["tickets"][0]}
    assert found == expected(), f"{path} at revision {revision}, seed {seed}"
    moved = bool(before != expected())
    if path == "/ui" and len(document.revisions) > 1:
        of_capacity = int(document.revisions[1].partition(".")[2])
        sums = {one: figures[one][0] for one in figures if "." in one}
        assert sums == model.capacity(of_capacity), f"{path} at {document.revisions}, seed {seed}"
    return moved


def sorted_pools(pools: dict[str, list[int]]) -> dict[str, list[int]]:
    """Return the figures in ascending order: the overview has the fullest pools first."""
    return {name: sorted(counts) for name, counts in pools.items()}
