"""Agents: all register and report at once, signs of life, and claims while offers change.

Each machine has one part with pages. The server creates its providers when it registers.
"""

import asyncio
import itertools
import json
from collections.abc import Iterator
from uuid import UUID, uuid5

from bench.fleet import AGENTS, identifier
from bench.measure import FOREVER, Bench, require_success
from bench.questions import claim
from bench.wire import Work, request

PAGES = "CUSTOM_HUGEPAGES_2MB"
THERE = 100_000
"""Pages of each machine; all are desired."""

GROUP = "bench"
CROWD = 64
"""Connections on which all agents do something at once."""
CLAIMING = 8
CHANGING = 4
"""Connections on which offers change during claims."""


async def measure(bench: Bench, size: int) -> None:
    """Measure all lines with `size` agents; the original has no agents."""
    await _create(bench, size)
    for what, make in (("register", registers), ("report", reports)):
        _, outcome = await bench.line(
            f"{what}, all agents at once",
            make(size),
            CROWD,
            least=size,
            most=size,
            seconds=FOREVER,
            warm=False,
        )
        require_success(outcome)
    for connections in bench.options.connections:
        await bench.line("sign of life", beats(size), connections)
    await bench.line("claims on pages", _claims(bench, range(size)), CLAIMING)
    await _claims_while_offers_change(bench, size)
    await _claims_while_agents_boot(bench, size)


def _agent(number: int) -> str:
    return identifier(AGENTS, number)


def _part(number: int) -> str:
    return str(uuid5(UUID(_agent(number)), "numa0"))


def _sent(number: int, method: str, what: str, **content: object) -> bytes:
    return request(method, f"/v1/agents/{_agent(number)}{what}", json.dumps(content).encode())


async def _create(bench: Bench, size: int) -> None:
    group, *agents = creations(size)
    require_success(await bench.drive(iter([group]), 1))
    require_success(await bench.drive(iter(agents), CROWD))


def creations(size: int) -> Iterator[bytes]:
    """Create the group of the agents, then each of them."""
    desired = json.dumps({"desired": {PAGES: {"amount": THERE}}}).encode()
    yield request("PUT", f"/v1/groups/{GROUP}", desired)
    for number in range(size):
        yield _sent(number, "PUT", "", group=GROUP)


def registers(size: int, boot: str = "boot-1") -> Iterator[bytes]:
    """Register each machine once."""
    for number in range(size):
        part = {
            "provider": _part(number),
            "name": "numa0",
            "classes": {PAGES: {"eligible": THERE}},
        }
        facts = {"hostname": f"machine-{number}"}
        yield _sent(number, "POST", "/register", boot_id=boot, facts=facts, parts=[part])


def reports(size: int, generation: int = 1, missing: int = 0) -> Iterator[bytes]:
    """Report each machine once; `missing` of its pages are not there."""
    for number in range(size):
        yield _sent(
            number,
            "PUT",
            "/report",
            boot_id="boot-1",
            report_generation=generation,
            desired_generation_seen=1,
            phase="done",
            actual={_part(number): {PAGES: THERE - missing}},
        )


def beats(size: int) -> Iterator[bytes]:
    """Return signs of life of one machine after another, without end."""
    return itertools.cycle(
        [
            _sent(number, "POST", "/alive", boot_id="boot-1", report_generation=1)
            for number in range(size)
        ]
    )


def _claims(bench: Bench, numbers: range) -> Iterator[bytes]:
    """Claim pages for new consumers, each on the next of these machines."""
    for number in itertools.cycle(numbers):
        yield claim(next(bench.numbers), {_part(number): {"resources": {PAGES: 1}}})


async def _claims_while_offers_change(bench: Bench, size: int) -> None:
    """Measure claims while machines report in turn that one page more or less is there."""
    changing = True

    def changes() -> Iterator[Work]:
        for generation in itertools.count(2):
            for report in reports(size, generation, generation % 2):
                if not changing:
                    return
                yield report

    reporting = asyncio.create_task(bench.drive(changes(), CHANGING))
    try:
        await bench.line(
            "mixed: claims and changing offers",
            _claims(bench, range(size)),
            CLAIMING,
            note="CPU of both per claim",
        )
    finally:
        changing = False
        outcome = await reporting
    told = f"{len(outcome.seconds)} reports during the claims"
    bench.check("offers change during claims", set(outcome.statuses) == {200}, told)


async def _claims_while_agents_boot(bench: Bench, size: int) -> None:
    """Measure claims on one half of the machines while all of the other half boot."""
    half = size // 2
    booting = asyncio.create_task(bench.drive(registers(half, "boot-2"), CROWD))

    def claims() -> Iterator[Work]:
        for number, one in enumerate(_claims(bench, range(half, size))):
            if number >= CLAIMING and booting.done():
                return
            yield one

    await bench.line(
        "mixed: claims and boots",
        claims(),
        CLAIMING,
        seconds=FOREVER,
        warm=False,
        note="while half of the agents register at once; CPU of both per claim",
    )
    outcome = await booting
    told = f"{half} registers in {outcome.elapsed:.1f} s"
    bench.check("agents boot during claims", set(outcome.statuses) == {200}, told)
