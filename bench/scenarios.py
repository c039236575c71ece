"""What is measured on each fleet, in order."""

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import replace

from bench import admission, fleet, native, prepared, questions
from bench.fleet import FULL, FULL_TOTAL, MOVED, RACES, identifier
from bench.loop import holding, probes
from bench.measure import LEAST, Bench
from bench.questions import SEVERAL
from bench.target import Moorage, Unusable
from bench.wire import Outcome, Work

LOADING_CONNECTIONS = 16
FOREVER = 3_600.0
RACERS = 8
RACES_LEAST = 10
MIXED_CONNECTIONS = 8
FILLING_CONNECTIONS = 64


async def measure(bench: Bench, *, again: bool) -> None:
    """Load the fleet, then measure one thing after the other.

    Args:
        bench: where to measure.
        again: leave out what does not depend on the size of the fleet; it has been measured.
    """
    if bench.fleet.shape == "line":
        await admission.measure(bench, bench.fleet.size)
        return
    if bench.fleet.prepared:
        await _prepared(bench)
        return
    await load(bench)
    if bench.fleet.shape == "ports":
        await _ports(bench)
    elif bench.fleet.shape == "slots":
        await bench.line(
            "candidates 8x8 limit=10", questions.slot_questions(10), 1, least=1, warm=False
        )
    elif bench.fleet.shape == "nested":
        await _nested(bench)
    else:
        await _flat(bench, again)
    if isinstance(bench.target, Moorage):
        await _restart(bench, bench.target)
        if bench.fleet.shape == "flat":
            await _held(bench, bench.target)


async def load(bench: Bench) -> None:
    """Load the fleet over HTTP; the original gets the rest by SQL when its time is over."""
    bench.empty_bytes = bench.target.memory_bytes()[0]
    if bench.fleet.shape == "flat":
        # One after the other: on SQLite the original fails when two workers write.
        all_done(await bench.drive(map(fleet.loading, fleet.special_hosts()), 1))
    peer, size = bench.target.peer, bench.fleet.size
    measured, outcome = await bench.line(
        "load",
        map(fleet.loading, bench.fleet.hosts()),
        LOADING_CONNECTIONS,
        seconds=bench.options.loading_seconds if peer else FOREVER,
        most=size,
        warm=False,
        note="hosts; each created and given inventories, traits, aggregates",
    )
    if peer and (measured.operations < size or measured.failed):
        filled = bench.target.fill(bench.fleet)
        told = f"{measured.operations} of {size} over HTTP, {measured.failed} of them not wholly; "
        bench.check("fleet loaded", True, f"{told}{filled} by SQL, and what was missing")
    else:
        all_done(outcome)


def all_done(outcome: Outcome) -> None:
    """Raise Unusable if a request was refused."""
    if any(status >= 300 for status in outcome.statuses):
        raise Unusable(f"refused: {outcome.statuses}, {outcome.sample!r}")


async def _prepared(bench: Bench) -> None:
    """What must not grow with the fleet, on one that is not loaded over HTTP."""
    target = bench.target
    assert isinstance(target, Moorage)
    bench.empty_bytes = target.memory_bytes()[0]
    target.stop()
    hosts = itertools.chain(fleet.special_hosts(), bench.fleet.hosts())
    started = time.perf_counter()
    await prepared.prepare(target.database(), hosts)
    told = f"{bench.fleet.size} hosts by the store's own plans, without the service, in"
    bench.check("fleet loaded", True, f"{told} {time.perf_counter() - started:.0f} s")
    await _restart(bench, target)
    for what, connections, make in questions.flat_lines():
        if what != questions.LARGE_ANSWER:
            await bench.line(what, make(), connections)
    await _claims(bench)
    await bench.line("schedule loop", questions.schedules(bench.numbers), SEVERAL)
    await native.claims(bench)


async def _ports(bench: Bench) -> None:
    """Each host has 1,320 candidates: a limit of 1,000 must not be used up by one of them."""
    limit, hosts = 1_000, bench.fleet.size
    await bench.line(f"candidates 3 of 12 ports limit={limit}", questions.port_questions(limit), 1)
    answer = await bench.ask(next(questions.port_questions(limit)))
    found = json.loads(answer.body)["allocation_requests"]
    offered = {fleet.number_of(uuid) for one in found for uuid in one["allocations"]}
    told = f"{len(found)} candidates on {len(offered)} of {hosts} hosts"
    bench.check("every host is offered", len(offered) == hosts, told)


async def _nested(bench: Bench) -> None:
    for what, connections, make in questions.nested_lines():
        await bench.line(what, make(), connections)


async def _flat(bench: Bench, again: bool) -> None:
    for what, connections, make in questions.flat_lines():
        await bench.line(what, make(), connections)
    claimed = await _claims(bench)
    await bench.line(
        "release", questions.releases(claimed), FILLING_CONNECTIONS, most=len(claimed), warm=False
    )
    await bench.line("schedule loop", questions.schedules(bench.numbers), SEVERAL)
    await _mixed(bench)
    await _refresh(bench)
    if not again:
        await _contended(bench)
        await _reshape(bench)
        await _race(bench)
    if isinstance(bench.target, Moorage):
        # The last one: packing fills hosts, on which claims of other lines would then fail.
        await native.claims(bench)


async def _claims(bench: Bench) -> list[bytes]:
    """Claim on hosts in turn; return the claims of the last line that were granted."""
    granted: list[bytes] = []
    for connections in bench.options.connections:
        granted.clear()
        work = questions.disjoint_claims(bench.numbers, bench.fleet)
        _, outcome = await bench.line("claims, disjoint hosts", _kept(work, granted), connections)
        refused = set(outcome.refused)
        granted = [one for one in granted if one not in refused]
    return granted


def _kept(work: Iterator[bytes], kept: list[bytes]) -> Iterator[bytes]:
    for one in work:
        kept.append(one)
        yield one


async def _contended(bench: Bench) -> None:
    """Claims that are all on one host; then on one that gets full, which must be exactly full."""
    for connections in bench.options.connections:
        work = questions.contended_claims(bench.numbers)
        await bench.line("claims, one host", work, connections)
    offered = FULL_TOTAL + FILLING_CONNECTIONS
    _, outcome = await bench.line(
        "claims until full",
        questions.filling_claims(bench.numbers),
        FILLING_CONNECTIONS,
        least=offered,
        most=offered,
        warm=False,
        refusable=True,
    )
    host = identifier(FULL, 0)
    used = questions.used(host, "PGPU", await bench.ask(questions.usages(host)))
    granted = outcome.statuses[204]
    told = f"{offered} claims on {FULL_TOTAL} units: {granted} granted, {used} in use"
    bench.check("exactly full, never over", used == granted == FULL_TOTAL, told)


async def _race(bench: Bench) -> None:
    """Eight claimers at once want the one unit of a host, round after round."""
    total = Outcome()
    winners = []

    async with bench.costs() as cost:
        for number in range(min(bench.options.races, RACES)):
            if number >= RACES_LEAST and total.elapsed > 4 * bench.options.seconds:
                break
            claims = list(itertools.islice(questions.racing_claims(bench.numbers, number), RACERS))
            outcome = await bench.drive(iter(claims), RACERS)
            winners.append(outcome.statuses[204])
            total.elapsed += outcome.elapsed
            total.seconds += outcome.seconds
            total.statuses += outcome.statuses
    measured = bench.measurement("race for one unit", RACERS, total, cost, refusable=True)
    bench.shown(replace(measured, note="ops/s: winners"))
    over, none = sum(count > 1 for count in winners), sum(count < 1 for count in winners)
    told = f"{len(winners)} rounds: sold twice or more in {over}, to nobody in {none}"
    bench.check("one winner of eight", not over and not none, told)


async def _mixed(bench: Bench) -> None:
    """Claims while as many other connections ask for candidates without a pause."""
    asking = True

    def endless() -> Iterator[Work]:
        for question in questions.flat_questions(1000):
            if not asking:
                return
            yield question

    asked = asyncio.create_task(bench.drive(endless(), MIXED_CONNECTIONS))
    work = questions.disjoint_claims(bench.numbers, bench.fleet)
    try:
        await bench.line(
            "mixed: claims beside candidates limit=1000",
            work,
            MIXED_CONNECTIONS,
            note="CPU of both per claim",
        )
    finally:
        asking = False
        await asked


async def _refresh(bench: Bench) -> None:
    """An Ironic reporter finds nothing changed: node by node, and all in one where that exists."""
    reported = bench.options.reported
    await bench.line(
        "refresh node by node",
        questions.refreshes(bench.fleet, reported),
        1,
        note="nodes; five GETs each, as nova's report client",
    )
    if isinstance(bench.target, Moorage):
        await native.reports(bench, reported)


async def _reshape(bench: Bench) -> None:
    """Move a class of 100 consumers from a host to its child, and back."""
    outcome = await bench.drive(questions.moving(identifier(MOVED, 0)), 1)
    all_done(outcome)
    await bench.line(
        "reshape with 100 consumers",
        questions.reshapes(),
        1,
        least=LEAST,
        warm=False,
        note="with a look at both providers before",
    )


async def _restart(bench: Bench, target: Moorage) -> None:
    """How long it takes to serve again with this fleet; the processor time is all spent on it."""
    target.stop()
    async with bench.costs() as cost:
        started = time.perf_counter()
        target.start()
        ready = time.perf_counter() - started
    outcome = Outcome(elapsed=ready, seconds=[ready])
    outcome.statuses[200] = 1
    measured = bench.measurement("restart until serving", 1, outcome, cost)
    grown = (cost.memory[0] - bench.empty_bytes) / target.count / bench.fleet.providers
    note = f"{grown:.0f} bytes per provider and process more than when empty"
    bench.shown(replace(measured, note=note))


SHOWN = 12
"""This many of the longest callbacks are named."""


async def _held(bench: Bench, target: Moorage) -> None:
    """How long any request holds the event loop: every route once, on a loop that is watched."""
    target.stop()
    url, directory = target.database(), target.storage.directory
    much = probes.Sizes.of(bench.fleet.size)
    with holding.watched(url, directory) as server:
        found = await holding.lines(server, much)
        if target.storage.cluster is not None:
            with holding.watched(url, directory) as other:
                found += await holding.following(server, other, url, much)
    found = holding.in_order(found)
    told = "; ".join(map(str, found[:SHOWN]))
    kept = found[0].held.milliseconds <= holding.HELD_MILLISECONDS_MAX
    bench.check("longest callback, by request", kept, f"{len(found)} requests; {told}")
    target.start()
