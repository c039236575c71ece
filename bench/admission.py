"""Pools and leases: grants, the hand-over in a long line, and what it costs to wait in it."""

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
"""File descriptors that this process needs besides its connections."""
HANDOVERS = 200
ASKING = 64
IDLE_SECONDS = 3.0
IDLE_SHARE_MAX = 0.05
"""Of one processor."""
LOOK_SECONDS = 0.5
"""Between two reads of the service's metrics: with this many open files they are not cheap."""
ARRIVAL_SECONDS_MAX = 40.0
"""How long the polls are given to arrive; each lasts for 60 s."""
WAVE = 2_000
"""Polls that arrive at the same instant: fewer than may wait for their turn (`queue_max`)."""
PATIENCE = 3_600


def pool(name: str, limit: int) -> bytes:
    """Make a pool, or change it."""
    wanted = {"limit": limit, "ttl": 3_600, "queue_max": 100_000, "pacing": None}
    return request("PUT", f"/v1/pools/{name}", json.dumps(wanted).encode())


def ask(name: str, key: str) -> bytes:
    """Request one unit."""
    wanted = {"needs": [{"pool": name}], "key": key, "patience": PATIENCE}
    return request("POST", "/v1/leases", json.dumps(wanted).encode())


def release(lease: str) -> bytes:
    """Release a lease."""
    return request("DELETE", f"/v1/leases/{lease}")


def poll(lease: str) -> bytes:
    """Wait for a ticket."""
    return request("GET", f"/v1/leases/{lease}?wait=60")


async def measure(bench: Bench, waiting: int) -> None:
    """Measure everything, with this many tickets in a line."""
    await _made(bench, pool(POOL, ASKING))
    for connections in bench.options.connections:
        await bench.line("grants, each given back", _grants(bench), connections)
    await _line(bench, waiting)


def _grants(bench: Bench) -> Iterator[Work]:
    def conversation(number: int) -> Conversation:
        answer = yield ask(POOL, f"grant-{number}")
        if answer.status == 201:
            yield release(json.loads(answer.body)["id"])
        return answer.status if answer.status != 201 else None

    return (conversation(number) for number in bench.numbers)


async def _made(bench: Bench, wanted: bytes) -> None:
    answer = await bench.ask(wanted)
    if answer.status >= 300:
        raise Unusable(f"no pool: {answer}")


async def _line(bench: Bench, waiting: int) -> None:
    """Pass one unit along a line, then let all its tickets wait at once."""
    await _made(bench, pool(LINE, 1))
    leases: list[str] = []

    def asking(number: int) -> Conversation:
        answer = yield ask(LINE, f"line-{number}")
        leases.append(json.loads(answer.body)["id"])
        return None

    keys = itertools.islice(bench.numbers, waiting + 1)
    # One after the other on one connection: the order of the answers is that of the line.
    made = await bench.drive((asking(number) for number in keys), 1)
    if any(status >= 300 for status in made.statuses):
        raise Unusable(f"no line: {made.statuses}, {made.sample!r}")
    rounds = min(HANDOVERS, waiting // 2)
    await _handovers(bench, leases[: rounds + 1], waiting)
    await _idle(bench, leases[rounds + 1 :])


async def _handovers(bench: Bench, leases: list[str], waiting: int) -> None:
    """Release the first; measure the time until the next one, which waits, gets its answer."""
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
    measured = bench.measurement("hand-over in a line", 1, outcome, cost)
    note = f"{waiting} waiting; from the release to the next one's answer"
    bench.shown(replace(measured, note=note))


async def _idle(bench: Bench, leases: list[str]) -> None:
    """Let all tickets of a line wait at once: what does it cost while nothing happens?"""
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
            f"{100 * spent / IDLE_SECONDS:.1f} % of a processor while nothing happens"
        )
        kept = waiting == len(there) and spent / IDLE_SECONDS < IDLE_SHARE_MAX
        bench.check("an idle line costs next to nothing", kept, told)
    finally:
        for one in polls:
            one.cancel()
        if polls:
            await asyncio.wait(polls)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def _waiters(bench: Bench) -> int:
    """How many clients wait, at all processes together."""
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
