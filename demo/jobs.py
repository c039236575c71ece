"""Jobs of the example: they ask for units, wait in line, run, report and release."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from demo.arrivals import Arrival, arrivals, wanted
from demo.asking import BUSY, Asker, Call, Refusal, granted
from demo.setting import ALL_POOLS, PAUSED, PAUSED_BECAUSE, PAUSED_FROM, SLOTS

TTL = 900.0
PATIENCE = 3_600.0
CHANGES_READ = 1_000

ASK_AGAIN_SECONDS = 6.0
"""How often a waiting job asks again if it has asked over a connection: less than the 10 s after
which the server takes it for gone, and passes over its ticket."""

ASKED_AGAIN = 24
"""Waiting jobs that ask again at once."""

MOMENT = 0.001
"""Seconds that such a request waits: one that does not wait is no sign that somebody is there."""

OVER = ("lease_ended", "lease_not_found", "token_stale")
"""Codes of refusals if a hold was over, or a grant was taken back, before the job noticed."""


@dataclass
class Job:
    """A job that has asked."""

    arrival: Arrival
    began: float | None = None
    """When it got its units; None: it waits."""
    renewed: float | None = None
    """When the server heard last that it knows of its units; None: it has not said so yet."""
    token: str | None = None
    """Of these units: a report for a grant that was taken back is refused by it."""
    reported: bool = False
    asked: float | None = None
    """When it asked last over a connection; None: the server does not watch for it."""

    def begin(self, now: float) -> None:
        """Start, as the change feed says: the server does not know yet that anybody has read it."""
        self.began = now

    def hear(self, lease: dict[str, Any], now: float) -> None:
        """Take an answer about its lease."""
        if lease["state"] == "granted":
            self.began = now if self.began is None else self.began
            self.renewed, self.token = now, lease["token"]
        elif lease["state"] == "waiting":
            self.wait()

    def wait(self) -> None:
        """Wait, perhaps again: nobody had read of the grant in time."""
        self.began = self.renewed = self.token = None
        self.reported = False

    @property
    def ends(self) -> float:
        """When it releases its units; only if it has begun."""
        assert self.began is not None
        return self.began + self.arrival.seconds

    @property
    def reports(self) -> float:
        """When it reports its outcome: it knows before the end whether it has started well."""
        assert self.began is not None
        return self.began + self.arrival.seconds / 4


class Jobs:
    """All jobs. Times are seconds since the past began."""

    owner = "ci"
    """The name by which they ask."""

    def __init__(self, seed: int, hosts: int, at_once: int, past: int) -> None:
        """Plan them; of those that arrive, at most `at_once` wait or run."""
        self._coming: Iterator[Arrival] = arrivals(seed, hosts, past)
        self._pause_at = past * PAUSED_FROM
        self._next = next(self._coming)
        self._at_once = at_once
        self._jobs: dict[str, Job] = {}
        self._cursor = ""
        self._paused = False

    def build(self, asker: Asker) -> None:
        """Create the pools."""
        calls = [Call("PUT", f"/v1/pools/{pool.name}", pool.wanted) for pool in ALL_POOLS]
        for region, names in SLOTS.items():
            body = {"names": names, "labels": {"region": region}}
            calls.append(Call("POST", "/v1/pools/gpu:slots", body))
        for answer in asker.ask(calls):
            granted(answer)
        (now,) = asker.ask([Call("GET", "/v1/watch?wait=0")])
        self._cursor = granted(now)["next"]

    def tick(self, now: float, owner: Asker, operator: Asker, *, connected: bool = False) -> None:
        """Do what is due; `connected`: jobs ask over connections, so the server watches them."""
        if not self._paused and now >= self._pause_at:
            self._paused = True
            reason = {"reason": PAUSED_BECAUSE}
            (answer,) = operator.ask([Call("POST", f"/v1/pools/{PAUSED.name}:pause", reason)])
            granted(answer)
        self._follow(now, owner)
        due, arriving = [*self._due(now), *self._waiting(now)], self._arriving(now)
        address = f"/v1/leases?wait={MOMENT}" if connected else "/v1/leases"
        asked = [Call("POST", address, wanted(one, TTL, PATIENCE)) for one in arriving]
        answers = owner.ask([*due, *asked])
        for call, answer in zip(due, answers, strict=False):
            lease = granted(answer, *OVER, *BUSY)
            if lease is not None and lease["id"] in self._jobs:
                self._jobs[lease["id"]].hear(lease, now)
            busy = isinstance(answer, Refusal) and answer.code in BUSY
            if call.method == "DELETE" and not busy:
                self._jobs.pop(call.path.rpartition("/")[2], None)
        for arrival, answer in zip(arriving, answers[len(due) :], strict=True):
            lease = granted(answer, "queue_full", *BUSY)
            if lease is None:  # this job never comes
                continue
            self._jobs[lease["id"]] = job = Job(arrival)
            job.asked = now if connected else None
            job.hear(lease, now)

    def _follow(self, now: float, asker: Asker) -> None:
        """Learn from the change feed which jobs were granted units, and which leases ended."""
        while True:
            address = f"/v1/watch?kinds=lease&wait=0&limit={CHANGES_READ}&after={self._cursor}"
            (answer,) = asker.ask([Call("GET", address)])
            window = granted(answer, "changes_gone", *BUSY)
            if window is None:
                # What was missed comes with the answers to renewals, and to those who ask again.
                if answer.code not in BUSY:
                    (newest,) = asker.ask([Call("GET", "/v1/watch?wait=0")])
                    found = granted(newest, *BUSY)
                    self._cursor = self._cursor if found is None else found["next"]
                return
            for change in window["changes"]:
                self._changed(change["key"], (change["value"] or {}).get("state", "ended"), now)
            if window["next"] == self._cursor:
                return
            self._cursor = window["next"]

    def _changed(self, lease: str, state: str, now: float) -> None:
        job = self._jobs.get(lease)
        if job is not None and state == "granted" and job.began is None:
            job.begin(now)
        elif job is not None and state == "waiting":
            job.wait()
        elif job is not None and state == "ended":
            del self._jobs[lease]

    def _due(self, now: float) -> Iterator[Call]:
        for lease, job in [*self._jobs.items()]:
            if job.began is None:
                continue
            if not job.reported and job.reports <= now:
                job.reported = True
                outcome = {"result": job.arrival.result, "token": job.token}
                yield Call("POST", f"/v1/leases/{lease}/outcome", outcome)
            if job.ends <= now:
                yield Call("DELETE", f"/v1/leases/{lease}")
            elif job.renewed is None or now - job.renewed >= TTL / 3:
                yield Call("POST", f"/v1/leases/{lease}/renew", {})

    def _waiting(self, now: float) -> Iterator[Call]:
        """Let jobs that wait ask again, those first that have not asked for the longest time."""
        due = [
            (job.asked, lease, job)
            for lease, job in self._jobs.items()
            if job.began is None and job.asked is not None and now - job.asked >= ASK_AGAIN_SECONDS
        ]
        for _, lease, job in sorted(due, key=itemgetter(0, 1))[:ASKED_AGAIN]:
            job.asked = now
            yield Call("GET", f"/v1/leases/{lease}?wait={MOMENT}")

    def _arriving(self, now: float) -> list[Arrival]:
        """Return the jobs that come now; those that are too many never come."""
        arriving: list[Arrival] = []
        while self._next.at <= now:
            if len(self._jobs) + len(arriving) < self._at_once:
                arriving.append(self._next)
            self._next = next(self._coming)
        return arriving
