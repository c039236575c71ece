"""What is measured, in order: loading, candidates on both kinds of host, claims."""

import itertools
import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from bench import fleet
from bench.fleet import FLAT, HOT, identifier
from bench.target import Target, processor_seconds
from bench.wire import Outcome, drive, request, until

LOADING_CONNECTIONS = 16
WARM_UP_SECONDS_MAX = 0.5
CONSUMER = "{:08x}-0000-4000-9000-{:012x}"
VARIANTS = 16
"""Different amounts that are asked for in turn, so that no two neighbours ask the same."""


@dataclass(frozen=True)
class Options:
    """How large the fleet is and how long each measurement takes."""

    flat: int = 15_000
    trees: int = 1_000
    seconds: float = 5.0
    connections: tuple[int, ...] = (1, 8, 64)


@dataclass(frozen=True)
class Measurement:
    """One line of the report. Times are in milliseconds; `cpu` per operation, of the service."""

    what: str
    connections: int
    operations: int
    failed: int
    rate: float
    p50: float
    p99: float
    cpu: float
    answer_bytes: int
    complaint: str = ""


async def measurements(target: Target, options: Options) -> AsyncIterator[Measurement]:
    """Load the fleet, then measure one thing after the other."""
    for number, stage in enumerate(fleet.loading(options.flat, options.trees), 1):
        name = f"load, stage {number}"
        yield await _measure(target, name, stage, LOADING_CONNECTIONS, None)
    for name, questions in (
        ("candidates flat limit=10", flat_questions(10)),
        ("candidates flat limit=1000", flat_questions(1000)),
        ("candidates nested limit=10", nested_questions(10)),
        ("candidates nested limit=1000", nested_questions(1000)),
    ):
        for connections in options.connections[:2]:
            yield await _measure(target, name, questions, connections, options.seconds)
    claimed = itertools.count()
    for name, requests in (
        ("claims, disjoint providers", disjoint_claims(claimed, options.flat)),
        ("claims, one provider", contended_claims(claimed)),
    ):
        for connections in options.connections:
            yield await _measure(target, name, requests, connections, options.seconds)


def flat_questions(limit: int) -> Iterator[bytes]:
    """Where would one server fit? Only flat hosts offer VCPU."""
    return _asked(
        f"/allocation_candidates?resources=VCPU:{n},MEMORY_MB:{512 * n},DISK_GB:{n}&limit={limit}"
        for n in range(1, VARIANTS + 1)
    )


def nested_questions(limit: int) -> Iterator[bytes]:
    """A server with pinned processors from one cell, a virtual function, and disk of the host."""
    return _asked(
        f"/allocation_candidates?resources=DISK_GB:{n}&resources_CPU=PCPU:{n},MEMORY_MB:{512 * n}"
        f"&resources_NET=SRIOV_NET_VF:1&group_policy=none&limit={limit}"
        for n in range(1, VARIANTS + 1)
    )


def _asked(paths: Iterator[str]) -> Iterator[bytes]:
    return itertools.cycle([request("GET", path) for path in paths])


def disjoint_claims(numbers: Iterator[int], flat: int) -> Iterator[bytes]:
    """New consumers, each on the next flat host."""
    # A step that shares no factor with the fleet visits every host before any twice.
    step = 7_919 if flat % 7_919 else 7_907
    return (_claim(number, identifier(FLAT, number * step % flat)) for number in numbers)


def contended_claims(numbers: Iterator[int]) -> Iterator[bytes]:
    """New consumers, all on one host."""
    return (_claim(number, identifier(HOT, 0)) for number in numbers)


def _claim(number: int, provider: str) -> bytes:
    body = {
        "allocations": {provider: {"resources": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}}},
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
        "project_id": "bench",
        "user_id": "bench",
    }
    path = f"/allocations/{CONSUMER.format(4, number)}"
    return request("PUT", path, json.dumps(body).encode())


async def _measure(
    target: Target,
    what: str,
    requests: Iterator[bytes],
    connections: int,
    seconds: float | None,
) -> Measurement:
    """Drive the requests, for some seconds or to their end, and add up what it cost."""
    if seconds is not None:
        warm_up = time.perf_counter() + min(WARM_UP_SECONDS_MAX, seconds / 4)
        await drive(target.url, until(warm_up, requests), connections)
        requests = until(time.perf_counter() + seconds, requests)
    before = processor_seconds(target.pids())
    outcome = await drive(target.url, requests, connections)
    spent = processor_seconds(target.pids()) - before
    return _measurement(what, connections, outcome, spent)


def _measurement(what: str, connections: int, outcome: Outcome, spent: float) -> Measurement:
    operations = len(outcome.seconds)
    ordered = sorted(outcome.seconds) or [0.0]
    failed = sum(count for status, count in outcome.statuses.items() if status >= 300)
    return Measurement(
        what=what,
        connections=connections,
        operations=operations,
        failed=failed,
        rate=operations / outcome.elapsed,
        p50=1_000 * ordered[len(ordered) // 2],
        p99=1_000 * ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
        cpu=1_000 * spent / max(operations, 1),
        answer_bytes=outcome.received // max(operations, 1),
        complaint=outcome.sample.decode(errors="replace")[:2_000],
    )
