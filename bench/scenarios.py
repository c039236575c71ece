"""The measurements on each fleet, in order."""

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import replace

from bench import admission, agents, fleet, native, prepared, questions
from bench.fleet import FULL, FULL_TOTAL, MOVED, RACES, identifier
from bench.loop import holding, probes
from bench.measure import FOREVER, LEAST, Bench, require_success
from bench.questions import SEVERAL
from bench.target import Moorage
from bench.wire import Outcome, Work

LOADING_CONNECTIONS = 16
RACERS = 8
RACES_LEAST = 10
MIXED_CONNECTIONS = 8
FILLING_CONNECTIONS = 64


async def measure(bench: Bench, *, again: bool) -> None:
    """Load the fleet, then measure all its lines.

    Args:
        bench: the service and the fleet.
        again: skip lines that do not depend on the size of the fleet and were measured before.
    """
    if bench.fleet.shape == "line":
        await admission.measure(bench, bench.fleet.size)
        return
    if bench.fleet.shape == "agents":
        await agents.measure(bench, bench.fleet.size)
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
            await _longest_callbacks(bench, bench.target)


async def load(bench: Bench) -> None:
    """Load the fleet over HTTP; for the original, write the rest by SQL when its time is over."""
    bench.empty_bytes = bench.target.memory_bytes()[0]
    if bench.fleet.shape == "flat":
        # One after another: on SQLite the original fails if two workers write.
        require_success(await bench.drive(map(fleet.loading, fleet.special_hosts()), 1))
    peer, size = bench.target.peer, bench.fleet.size
    measured, outcome = await bench.line(
        "load",
        map(fleet.loading, bench.fleet.hosts()),
        LOADING_CONNECTIONS,
        seconds=bench.options.loading_seconds if peer else FOREVER,
        most=size,
        warm=False,
        note="one host each: create it, set inventories, traits, aggregates",
    )
    if peer and (measured.operations < size or measured.failed):
        filled = bench.target.fill(bench.fleet)
        told = f"{measured.operations} of {size} over HTTP, {measured.failed} of them incompletely"
        bench.check("fleet loaded", True, f"{told}; {filled} by SQL, and all missing parts")
    else:
        require_success(outcome)


async def _prepared(bench: Bench) -> None:
    """Measure what must not grow with the fleet, on one that is not loaded over HTTP."""
    target = bench.target
    assert isinstance(target, Moorage)
    bench.empty_bytes = target.memory_bytes()[0]
    target.stop()
    hosts = itertools.chain(fleet.special_hosts(), bench.fleet.hosts())
    started = time.perf_counter()
    await prepared.prepare(target.database(), hosts)
    told = f"{bench.fleet.size} hosts by plans of the store, without the service, in"
    bench.check("fleet loaded", True, f"{told} {time.perf_counter() - started:.0f} s")
    await _restart(bench, target, "start from all rows")
    await _restart(bench, target)
    for what, connections, make in questions.flat_lines():
        if what != questions.LARGE_ANSWER:
            await bench.line(what, make(), connections)
    await _claims(bench)
    await bench.line("schedule loop", questions.schedules(bench.numbers), SEVERAL)
    await native.claims(bench)


async def _ports(bench: Bench) -> None:
    """Check that a single host, with 1,320 candidates, does not use up a limit of 1,000."""
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
        # The last: `pack` fills hosts, on which the claims of other lines would then fail.
        await native.claims(bench)


async def _claims(bench: Bench) -> list[bytes]:
    """Claim on hosts in turn; return the successful claims of the last line."""
    granted: list[bytes] = []
    for connections in bench.options.connections:
        granted.clear()
        work = questions.disjoint_claims(bench.numbers, bench.fleet)
        _, outcome = await bench.line(
            "claims, disjoint hosts", _recorded(work, granted), connections
        )
        refused = set(outcome.refused)
        granted = [one for one in granted if one not in refused]
    return granted


def _recorded(work: Iterator[bytes], kept: list[bytes]) -> Iterator[bytes]:
    for one in work:
        kept.append(one)
        yield one


async def _contended(bench: Bench) -> None:
    """Claim on one host; then on one that gets full, and check that it is exactly full."""
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
    bench.check("capacity used exactly, never exceeded", used == granted == FULL_TOTAL, told)


async def _race(bench: Bench) -> None:
    """Send eight concurrent claims for the only unit of a host, in each of many rounds."""
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
    bench.show(replace(measured, note="ops/s: successful claims"))
    over, none = sum(count > 1 for count in winners), sum(count < 1 for count in winners)
    told = f"{len(winners)} rounds: several successful claims in {over}, none in {none}"
    bench.check("one of eight claims succeeds", not over and not none, told)


async def _mixed(bench: Bench) -> None:
    """Measure claims while as many other connections ask for candidates without a pause."""
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
            "mixed: claims and candidates limit=1000",
            work,
            MIXED_CONNECTIONS,
            note="CPU of both per claim",
        )
    finally:
        asking = False
        await asked


async def _refresh(bench: Bench) -> None:
    """Measure reports of unchanged nodes: node by node, and, on Moorage, all in one request."""
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
    """Measure reshapes that move a class with 100 consumers from a host to its child and back."""
    outcome = await bench.drive(questions.moving(identifier(MOVED, 0)), 1)
    require_success(outcome)
    await bench.line(
        "reshape with 100 consumers",
        questions.reshapes(),
        1,
        least=LEAST,
        warm=False,
        note="including two GETs of inventories before",
    )


async def _restart(bench: Bench, target: Moorage, line: str = "restart until serving") -> None:
    """Measure how long a restart with this fleet takes, and its processor time."""
    target.stop()
    async with bench.costs() as cost:
        started = time.perf_counter()
        target.start()
        ready = time.perf_counter() - started
    outcome = Outcome(elapsed=ready, seconds=[ready])
    outcome.statuses[200] = 1
    measured = bench.measurement(line, 1, outcome, cost)
    grown = (cost.memory[0] - bench.empty_bytes) / target.count / bench.fleet.providers
    note = f"{grown:.0f} bytes per provider and process, compared with an empty service"
    bench.show(replace(measured, note=note))


SHOWN = 12
"""The number of callbacks that the check names, the longest first."""


async def _longest_callbacks(bench: Bench, target: Moorage) -> None:
    """Check how long requests block the event loop: every route once, with a measured loop."""
    target.stop()
    url, directory = target.database(), target.storage.directory
    sizes = probes.Sizes.of(bench.fleet.size)
    with holding.measured_server(url, directory) as server:
        found = await holding.lines(server, sizes)
        if target.storage.cluster is not None:
            with holding.measured_server(url, directory) as other:
                found += await holding.follow(server, other, url, sizes)
    found = holding.in_order(found)
    told = "; ".join(map(str, found[:SHOWN]))
    kept = found[0].held.milliseconds <= holding.HELD_MILLISECONDS_MAX
    bench.check("longest event-loop callback", kept, f"{len(found)} requests; {told}")
    target.start()
