"""Jobs of the example: they ask for units, wait in line, run, report and release."""

from collections.abc import Iterator
from dataclasses import dataclass

from demo.arrivals import Arrival, arrivals, wanted
from demo.asking import Asker, Call, granted
from demo.setting import ALL_POOLS, PAUSED, PAUSED_BECAUSE, PAUSED_FROM, SLOTS

TTL = 900.0
PATIENCE = 3_600.0
CHANGES_READ = 1_000

OVER = ("lease_ended", "lease_not_found")
"""Codes of refusals if a hold was over before the job noticed."""

NEVER_GRANTED = "invalid"
"""The code of the refusal of an outcome if the grant was taken back before the job noticed."""


@dataclass
class Job:
    """A job that has asked."""

    arrival: Arrival
    began: float | None = None
    """When it got its units; None: it waits."""
    renewed: float = 0.0
    reported: bool = False

    def begin(self, now: float) -> None:
        """Start."""
        self.began = self.renewed = now

    def wait_again(self) -> None:
        """Be a ticket again: the grant was not confirmed in time, as after a laptop has slept."""
        self.began, self.reported = None, False

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

    def tick(self, now: float, owner: Asker, operator: Asker) -> None:
        """Do what is due."""
        if not self._paused and now >= self._pause_at:
            self._paused = True
            reason = {"reason": PAUSED_BECAUSE}
            (answer,) = operator.ask([Call("POST", f"/v1/pools/{PAUSED.name}:pause", reason)])
            granted(answer)
        self._follow(now, owner)
        due, arriving = [*self._due(now)], self._arriving(now)
        asked = [Call("POST", "/v1/leases", wanted(one, TTL, PATIENCE)) for one in arriving]
        answers = owner.ask([*due, *asked])
        for call, answer in zip(due, answers[: len(due)], strict=True):
            reported = call.path.endswith("/outcome")
            granted(answer, *OVER, *((NEVER_GRANTED,) if reported else ()))
        for arrival, answer in zip(arriving, answers[len(due) :], strict=True):
            lease = granted(answer)
            job = self._jobs[lease["id"]] = Job(arrival)
            if lease["state"] == "granted":
                job.begin(now)

    def _follow(self, now: float, asker: Asker) -> None:
        """Learn from the change feed which jobs were granted units, and which leases ended."""
        while True:
            address = f"/v1/watch?kinds=lease&wait=0&limit={CHANGES_READ}&after={self._cursor}"
            (window,) = asker.ask([Call("GET", address)])
            for change in granted(window)["changes"]:
                self._changed(change["key"], (change["value"] or {}).get("state", "ended"), now)
            if window["next"] == self._cursor:
                return
            self._cursor = window["next"]

    def _changed(self, lease: str, state: str, now: float) -> None:
        job = self._jobs.get(lease)
        if job is not None and state == "granted" and job.began is None:
            job.begin(now)
        elif job is not None and state == "waiting":
            job.wait_again()
        elif job is not None and state == "ended":
            del self._jobs[lease]

    def _due(self, now: float) -> Iterator[Call]:
        for lease, job in [*self._jobs.items()]:
            if job.began is None:
                continue
            if not job.reported and job.reports <= now:
                job.reported = True
                yield Call("POST", f"/v1/leases/{lease}/outcome", {"result": job.arrival.result})
            if job.ends <= now:
                del self._jobs[lease]
                yield Call("DELETE", f"/v1/leases/{lease}")
            elif now - job.renewed >= TTL / 3:
                job.renewed = now
                yield Call("POST", f"/v1/leases/{lease}/renew", {})

    def _arriving(self, now: float) -> list[Arrival]:
        """Return the jobs that come now; those that are too many never come."""
        arriving: list[Arrival] = []
        while self._next.at <= now:
            if len(self._jobs) + len(arriving) < self._at_once:
                arriving.append(self._next)
            self._next = next(self._coming)
        return arriving
