"""Jobs of the example: they ask for units, wait in line, run, report and release."""

import random
import time
from dataclasses import dataclass

from demo.setting import PAUSED, PAUSED_BECAUSE, POOLS, SLOTS, SUITES, USERS, PoolSetting
from moorage.client.admission import Admission
from moorage.client.transport import RefusedError, Transport
from moorage.wire.admission import LeaseWanted, NeedWanted

LOOK_EVERY = 2.0
"""Seconds between two looks at which tickets were granted."""

TTL = 300.0
PATIENCE = 3_600.0
PAUSED_JOBS = 3


@dataclass
class Job:
    """A job, from its request to its end."""

    pool: PoolSetting
    seconds: float
    ends_at: float | None = None
    """When it releases its units; None: it waits."""
    renewed_at: float = 0.0


class Jobs:
    """Keeps a number of jobs in the pools."""

    def __init__(self, transport: Transport, count: int, dice: random.Random) -> None:
        self._admission = Admission(transport)
        self._transport = transport
        self._count = count
        self._dice = dice
        self._jobs: dict[str, Job] = {}
        self._number = 0
        self._looked_at = 0.0

    def build(self) -> None:
        """Create the pools, and the first jobs."""
        for pool in POOLS:
            self._transport.request("PUT", f"/v1/pools/{pool.name}", pool.wanted)
        self._transport.request("PUT", f"/v1/pools/{PAUSED}", {"limit": 15, "hold": 900.0})
        self._transport.request("POST", f"/v1/pools/{PAUSED}:pause", {"reason": PAUSED_BECAUSE})
        for region, names in SLOTS.items():
            body = {"names": names, "labels": {"region": region}}
            self._transport.request("POST", "/v1/pools/gpu:slots", body)
        for _ in range(PAUSED_JOBS):
            self._ask(PoolSetting(PAUSED, {}, 0.0, (60.0, 60.0)))
        while len(self._jobs) < self._count:
            self._ask(self._chosen())

    def _chosen(self) -> PoolSetting:
        return self._dice.choices(POOLS, [pool.share for pool in POOLS])[0]

    def _ask(self, pool: PoolSetting) -> None:
        self._number += 1
        dice = self._dice
        needs = [NeedWanted(pool=pool.name, units=1)]
        if pool.name == "gpu" and dice.random() < 0.5:
            needs = [NeedWanted(pool="gpu", units=1, labels={"region": dice.choice([*SLOTS])})]
        labels = {
            "job": f"{dice.choice(SUITES)}-{self._number}",
            "host": f"runner-{dice.randrange(24):02d}",
            "user": dice.choice(USERS),
            "build": f"https://ci.example.org/builds/{10_000 + self._number}",
        }
        wanted = LeaseWanted(
            needs=needs,
            key=f"demo-{self._number}",
            ttl=TTL,
            priority=dice.choice((0, 0, 0, 0, 5)),
            labels=labels,
            patience=PATIENCE,
        )
        lease = self._admission.ask(wanted)
        job = self._jobs[lease.id] = Job(pool, dice.uniform(*pool.seconds))
        if lease.state == "granted":
            self._begin(job)

    def _begin(self, job: Job) -> None:
        job.renewed_at = time.monotonic()
        job.ends_at = job.renewed_at + job.seconds

    def tick(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EVERY:
            self._looked_at = now
            self._look()
        for lease, job in [*self._jobs.items()]:
            if job.ends_at is None:
                continue
            if job.ends_at <= now:
                self._end(lease, job)
            elif now - job.renewed_at >= TTL / 3:
                job.renewed_at = now
                self._transport.request("POST", f"/v1/leases/{lease}/renew", {})
        if len(self._jobs) < self._count and self._dice.random() < 0.7:
            self._ask(self._chosen())

    def _look(self) -> None:
        """Notice grants, and leases that have ended by themselves."""
        states = {one.id: one.state for one in self._admission.leases(state="granted")}
        waiting = {one.id for one in self._admission.leases(state="waiting")}
        for lease, job in [*self._jobs.items()]:
            if states.get(lease) == "granted" and job.ends_at is None:
                self._begin(job)
            elif lease not in states and lease not in waiting:
                del self._jobs[lease]

    def _end(self, lease: str, job: Job) -> None:
        del self._jobs[lease]
        result = "ok"
        if self._dice.random() < job.pool.failures:
            result = self._dice.choice(("failed", "throttled"))
        try:
            self._transport.request("POST", f"/v1/leases/{lease}/outcome", {"result": result})
            self._transport.request("DELETE", f"/v1/leases/{lease}")
        except RefusedError as refused:  # its hold was over meanwhile
            if refused.code not in {"lease_ended", "lease_not_found"}:
                raise
