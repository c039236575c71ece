"""Pools and leases: grants, handovers in a long line, and the cost of waiting clients."""

import asyncio
import itertools
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import replace

from bench.measure import Bench
from bench.target import Unusable
from bench.wire import Conversation, Outcome, Work, drive, request

POOL, LINE = "bench/grants", "bench/line"
FILES_SPARE = 200
"""File descriptors that this process needs in addition to its connections."""
HANDOVERS = 200
ASKING = 64
IDLE_SECONDS = 3.0
IDLE_SHARE_MAX = 0.05
"""The share of one processor that an idle line may use."""
LOOK_SECONDS = 0.5
"""The interval between two reads of the service's metrics, which are slow with many open files."""
ARRIVAL_SECONDS_MAX = 40.0
"""How long to wait until all polls have arrived; each lasts 60 s."""
WAVE = 2_000
"""Polls that are sent at once: fewer than `queue_max`."""
PATIENCE = 3_600


def pool(name: str, limit: int) -> bytes:
    """Return a request that creates or changes a pool."""
    wanted = {"limit": limit, "ttl": 3_600, "queue_max": 100_000, "pacing": None}
    return request("PUT", f"/v1/pools/{name}", json.dumps(wanted).encode())


def grant_pool() -> bytes:
    """Return a request that creates the pool of `grants`, with a unit for each connection."""
    return pool(POOL, ASKING)


def ask(name: str, key: str) -> bytes:
    """Return a request for one unit."""
    wanted = {"needs": [{"pool": name}], "key": key, "patience": PATIENCE}
    return request("POST", "/v1/leases", json.dumps(wanted).encode())


def release(lease: str) -> bytes:
    """Return a request that releases a lease."""
    return request("DELETE", f"/v1/leases/{lease}")


def poll(lease: str) -> bytes:
    """Return a long poll for a ticket."""
    return request("GET", f"/v1/leases/{lease}?wait=60")


async def measure(bench: Bench, waiting: int) -> None:
    """Measure everything, with `waiting` tickets in a line."""
    await _create_pool(bench, grant_pool())
    for connections in bench.options.connections:
        await bench.line("grant and release", grants(bench.numbers), connections)
    await _line(bench, waiting)


def grants(numbers: Iterator[int]) -> Iterator[Work]:
    """Yield conversations: a lease is granted, then released."""

    def conversation(number: int) -> Conversation:
        answer = yield ask(POOL, f"grant-{number}")
        if answer.status == 201:
            yield release(json.loads(answer.body)["id"])
        return answer.status if answer.status != 201 else None

    return (conversation(number) for number in numbers)


async def _create_pool(bench: Bench, wanted: bytes) -> None:
    answer = await bench.ask(wanted)
    if answer.status >= 300:
        raise Unusable(f"the pool was not created: {answer}")


async def _line(bench: Bench, waiting: int) -> None:
    """Measure handovers of one unit along a line, then all its clients waiting at once."""
    await _create_pool(bench, pool(LINE, 1))
    leases: list[str] = []

    def asking(number: int) -> Conversation:
        answer = yield ask(LINE, f"line-{number}")
        leases.append(json.loads(answer.body)["id"])
        return None

    keys = itertools.islice(bench.numbers, waiting + 1)
    # One connection sends them in sequence: the order of the answers is that of the line.
    made = await bench.drive((asking(number) for number in keys), 1)
    if any(status >= 300 for status in made.statuses):
        raise Unusable(f"the line was not created: {made.statuses}, {made.sample!r}")
    rounds = min(HANDOVERS, waiting // 2)
    await _handovers(bench, leases[: rounds + 1], waiting)
    await _idle(bench, leases[rounds + 1 :])


async def _handovers(bench: Bench, leases: list[str], waiting: int) -> None:
    """Measure the time from a release until the long poll of the next ticket returns."""
    outcome = Outcome()
    async with bench.costs() as cost:
        begun = time.perf_counter()
        for holder, following in itertools.pairwise(leases):
            waiter = asyncio.create_task(bench.ask(poll(following)))
            looked = await bench.ask(request("GET", f"/v1/leases/{following}"))
            started = time.perf_counter()
            await bench.ask(release(holder))
            answer = await waiter
            outcome.seconds.append(time.perf_counter() - started)
            granted = json.loads(answer.body).get("state") == "granted"
            outcome.statuses[looked.status if granted else 599] += 1
        outcome.elapsed = time.perf_counter() - begun
    measured = bench.measurement("handover in a line", 1, outcome, cost)
    note = f"{waiting} waiting; from the release to the response to the next ticket's poll"
    bench.show(replace(measured, note=note))


async def _idle(bench: Bench, leases: list[str]) -> None:
    """Measure the memory and processor time of a line whose clients all wait at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    there = leases[: hard - FILES_SPARE]
    before = bench.target.memory_bytes()[0]
    polls: list[asyncio.Task[Outcome]] = []
    try:
        waiting = 0
        end = time.perf_counter() + ARRIVAL_SECONDS_MAX
        for first in range(0, len(there), WAVE):
            wave = there[first : first + WAVE]
            work = iter([poll(lease) for lease in wave])
            polls.append(asyncio.create_task(drive(bench.target.urls, work, len(wave))))
            while waiting < first + len(wave) and time.perf_counter() < end:
                await asyncio.sleep(LOOK_SECONDS)
                waiting = await _waiters(bench)
        await asyncio.sleep(IDLE_SECONDS)
        grown = bench.target.memory_bytes()[0] - before
        spent = sum(bench.target.processor_seconds())
        await asyncio.sleep(IDLE_SECONDS)
        spent = sum(bench.target.processor_seconds()) - spent
        told = (
            f"{waiting} long polls: {grown / max(waiting, 1) / 1e3:.1f} kB each; "
            f"{100 * spent / IDLE_SECONDS:.1f} % of a processor while idle"
        )
        kept = waiting == len(there) and spent / IDLE_SECONDS < IDLE_SHARE_MAX
        bench.check("an idle line uses little CPU", kept, told)
    finally:
        for one in polls:
            one.cancel()
        if polls:
            await asyncio.wait(polls)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def _waiters(bench: Bench) -> int:
    """Return how many clients wait, summed over all processes."""
    total = 0
    for url in bench.target.urls:
        answers: list[bytes] = []

        def conversation(kept: list[bytes] = answers) -> Conversation:
            kept.append((yield request("GET", "/metrics")).body)
            return None

        await drive([url], iter([conversation()]), 1)
        for line in answers[0].splitlines():
            if line.startswith(b"moorage_waiters "):
                total += int(float(line.split()[1]))
    return total
