"""Three failures of real fleets, with the real agent of a machine beside a real server.

* A hypervisor whose reservoir failed sits at 0, and nobody sees it.
* Another one is offered before its memory exists, or although nobody hears of it.
* A third one starts its guests after a boot, before its reservoir is complete. A starter that only
  waits for enough pages for itself sees the same free pages as all the others.

Each must be visible with the next report, fire its alert, and start nothing without its pages.
`tests/alerts` checks the rules of the alerts.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from platform import node
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.command import moorage, write_private
from tests.e2e.support.agent_machine import AgentMachine, agent_machine
from tests.e2e.support.carried import eventually
from tests.e2e.support.machine import AGENT, ELIGIBLE, NUMA0, PAGES, Machine

pytestmark = pytest.mark.thorough

FAILED = "MoorageReservoirFailed"
SHORT = "MoorageReservoirShort"
FAILURES = "MoorageAgentFailures"
LOST = "MoorageAgentsLost"
"""The alerts of the rules in contrib."""

GUESTS, EACH = 50, ELIGIBLE // 100
"""Each guest needs 1 % of the machine."""

GIB_PAGES = 512
WAIT = 20.0
RETRY_SECONDS = 310.0
"""How long an agent may take to try again: its random delays grow, usually to some seconds here."""

NEXT_BOOT = "7e3c1f52-0a55-4a0b-9d3a-3b1e5a7c9d10"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[AgentMachine]:
    """Provide a machine with 16 GiB that is ready; nothing is desired yet."""
    with agent_machine(tmp_path) as machine:
        machine.start()
        until(lambda: machine.shown()["readiness"] == "ready")
        yield machine


def until(is_so: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something is so."""
    eventually(lambda: is_so() or None, seconds)


def set_desired(machine: AgentMachine, pages: int) -> None:
    """Set how many pages the machine should have."""
    machine.run("agent", "set-desired", AGENT, PAGES, str(pages))


def with_orders(machine: AgentMachine) -> Any:
    """Return the agent if it has reported since its last orders, otherwise None."""
    shown = machine.shown()
    return shown if shown["desired_generation_seen"] == shown["desired_generation"] else None


def test_a_reservoir_that_fails_is_seen_and_offers_nothing(machine: AgentMachine) -> None:
    """One report after the failure the operator sees it, it alarms, and nothing is placed there."""
    machine.kernel.change(read_only=True)
    until(lambda: machine.shown()["phase"] == "done")
    assert [machine.alarm(alert) for alert in (FAILED, SHORT, FAILURES)] == [0, 0, 0]
    set_desired(machine, 512)
    assert eventually(lambda: with_orders(machine))["readiness"] == "failed"
    assert machine.offered() == 0
    shown = eventually(lambda: with_failure(machine))
    assert shown["readiness"] == "failed"
    assert shown["failure"]["next_retry_at"] > shown["failure"]["since"]
    assert [machine.alarm(alert) for alert in (FAILED, SHORT, FAILURES)] == [1, 1, 1]
    assert machine.pages()["offered"] == 0
    assert machine.claim(1)[1] == 409
    assert [one["id"] for one in machine.run("agent", "list", "--not-offered")] == [AGENT]
    explained = machine.explained(f"{PAGES}=512")
    assert explained.returncode == 1
    (named,) = [line for line in explained.stdout.splitlines() if AGENT in line]
    failure = shown["failure"]["message"]
    assert named.split("\t") == [f"  {AGENT}", node(), PAGES, "failed", failure]
    machine.kernel.change(read_only=False)
    until(lambda: machine.offered() == 512, RETRY_SECONDS)
    assert [machine.alarm(alert) for alert in (FAILED, SHORT)] == [0, 0]
    until(lambda: machine.alarm(FAILURES) == 0)


def with_failure(machine: AgentMachine) -> Any:
    """Return the agent if it has reported a failure, otherwise None."""
    shown = machine.shown()
    return shown if shown["failure"] is not None else None


def test_nothing_is_offered_before_it_is_there(machine: AgentMachine) -> None:
    """A kernel that finds memory for 600 of 1,024 pages: exactly these are offered."""
    machine.room(600)
    set_desired(machine, 1024)
    until(lambda: machine.offered() == 600)
    assert machine.shown()["readiness"] == "degraded"
    until(lambda: machine.alarm(FAILURES) == 1)
    assert machine.alarm(SHORT) == 1
    assert machine.alarm(FAILED) == 0
    assert machine.claim(601)[1] == 409
    assert machine.claim(600)[1] == 204
    assert machine.claim(1)[1] == 409
    machine.room(1024)
    until(lambda: machine.offered() == 1024, RETRY_SECONDS)
    assert [machine.alarm(alert) for alert in (FAILED, SHORT)] == [0, 0]
    until(lambda: machine.alarm(FAILURES) == 0)
    assert machine.claim(424)[1] == 204


def test_a_silent_agent_offers_nothing(machine: AgentMachine) -> None:
    """An agent that is killed is withdrawn within 25 seconds, then alarms; allocations stay."""
    set_desired(machine, 512)
    until(lambda: machine.offered() == 512)
    assert machine.claim(100)[1] == 204
    machine.kill()
    until(lambda: machine.shown()["liveness"] == "late", seconds=25.0)
    assert machine.alarm(LOST) == 0
    pages = machine.pages()
    assert (pages["offered"], pages["used"]) == (0, 100)
    assert machine.claim(1)[1] == 409
    until(lambda: machine.alarm(LOST) == 1, seconds=40.0)
    assert machine.pages() == {**pages, "why": "lost"}


def test_a_guest_starts_after_its_pages(machine: AgentMachine) -> None:
    """Pages are prepared and offered; after a boot nothing starts before they are there again."""
    set_desired(machine, 1024)
    until(lambda: machine.offered() == 1024)
    assert machine.kernel.pool("2MB")["nr"] == 1024
    guest, status = machine.claim(800)
    assert status == 204
    assert machine.claim(300)[1] == 409
    last, status = machine.claim(200)
    assert status == 204
    assert machine.wait(guest, "5s") == 0
    machine.kill()
    machine.reboot()
    machine.room(900)
    assert machine.wait(guest, "1s") == 4, "the server knows only the boot before"
    machine.start()
    assert machine.wait(guest, "20s") == 0
    assert machine.kernel.pool("2MB")["nr"] >= 800
    assert machine.wait(last, "1s") == 3, "only 100 of its 200 pages are there"
    assert machine.alarm(SHORT) == 1
    assert machine.wait(str(uuid4()), "1s") == 4, "it holds nothing here"
    machine.room(1024)
    until(lambda: machine.wait(last, "1s") == 0, RETRY_SECONDS)
    assert machine.kernel.pool("2MB")["nr"] >= 1000


def test_fifty_guests_of_a_real_agent(tmp_path: Path) -> None:
    """Guests with 1 GiB each, on a machine with 100 GiB that obtains 1 GiB, then 25, then all."""
    with agent_machine(tmp_path, gib=100) as machine:
        machine.start()
        until(lambda: machine.shown()["readiness"] == "ready")
        set_desired(machine, 100 * GIB_PAGES)
        until(lambda: machine.offered() == 100 * GIB_PAGES)
        claims = [machine.claim(GIB_PAGES) for _ in range(GUESTS)]
        assert {status for _, status in claims} == {204}
        guests = [guest for guest, _ in claims]
        machine.kill()
        machine.reboot()
        for gib in (1, 25):
            machine.room(gib * GIB_PAGES)
            try_again(machine)
            until(partial(there_in_real, machine, gib))
            expected = [True] * gib + [False] * (GUESTS - gib)
            assert may_start(machine, guests) == expected
            assert machine.wait(guests[gib - 1], "1s") == 0
            assert machine.wait(guests[gib], "1s") == 3
            assert machine.alarm(SHORT) == 1
        machine.room(100 * GIB_PAGES)
        try_again(machine)
        until(lambda: machine.offered() == 100 * GIB_PAGES)
        assert may_start(machine, guests) == [True] * GUESTS
        assert machine.alarm(SHORT) == 0


def try_again(machine: AgentMachine) -> None:
    """Start the agent, again if it runs: then it need not wait until its next attempt."""
    machine.kill()
    machine.start()


def there_in_real(machine: AgentMachine, gib: int) -> bool:
    """Return whether the server knows of exactly so much in this boot, after a whole pass."""
    shown = machine.shown()
    booted = shown["boot_id"] == machine.boot and shown["phase"] == "done"
    return booted and machine.offered() == gib * GIB_PAGES


def may_start(machine: Machine, guests: list[str]) -> list[bool]:
    """Ask for all guests at once, the last one first; return the answers in their order."""
    with ThreadPoolExecutor(GUESTS) as pool:
        asked = {guest: pool.submit(machine.may_start, guest) for guest in reversed(guests)}
        return [asked[guest].result()["may_start"] for guest in guests]


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Machine]:
    """Provide a machine that is ready and has all its pages; the test is its agent."""
    machine = Machine(tmp_path, "--no-access-log")
    with machine.server:
        machine.create()
        assert machine.register()[0] == 200
        machine.desired(ELIGIBLE)
        status, answer = machine.report(1, ELIGIBLE)
        assert (status, answer["directive"]) == (200, "none"), answer
        yield machine


def booted(machine: Machine) -> list[str]:
    """Place the guests, then boot the machine; return them in the order of their places."""
    guests = [machine.claim(EACH) for _ in range(GUESTS)]
    assert {status for _, status in guests} == {204}
    machine.boot = NEXT_BOOT
    assert machine.register()[0] == 200
    return [guest for guest, _ in guests]


def there(machine: Machine, generation: int, pages: int, phase: str = "done") -> None:
    """Report progress."""
    status, answer = machine.report(generation, pages, phase=phase)
    assert status == 200, answer


def naive(machine: Machine, guests: list[str]) -> list[str]:
    """Return the guests that see enough pages for themselves: the control."""
    return [one for one in guests if machine.may_start(one)["actual"][NUMA0][PAGES] >= EACH]


def test_exactly_those_that_fit_start(scripted: Machine) -> None:
    """All fifty ask at once; with each report the next ones pass, in the order of their places."""
    guests = booted(scripted)
    with ThreadPoolExecutor(GUESTS) as pool:
        asking = {guest: pool.submit(scripted.may_start, guest, WAIT) for guest in reversed(guests)}
        # The guests are unconfirmed until the machine has been prepared.
        there(scripted, 2, EACH, "preparing")
        assert not any(scripted.may_start(guest)["may_start"] for guest in guests)
        there(scripted, 3, EACH)
        assert asking[guests[0]].result()["may_start"]
        now = [scripted.may_start(guest)["may_start"] for guest in guests]
        assert now == [True] + [False] * 49
        assert len(naive(scripted, guests)) * EACH > EACH, "a naive starter must overshoot"
        there(scripted, 4, 25 * EACH)
        first = [asking[guest].result()["may_start"] for guest in guests[:25]]
        assert first == [True] * 25
        now = [scripted.may_start(guest)["may_start"] for guest in guests]
        assert now == [True] * 25 + [False] * 25
        there(scripted, 5, ELIGIBLE)
        assert all(asking[guest].result()["may_start"] for guest in guests)


def test_the_command_fails_closed(scripted: Machine, tmp_path: Path) -> None:
    """`moorage agent wait` passes the first guest only; without a server nobody starts."""
    guests = booted(scripted)
    there(scripted, 2, EACH)
    token = tmp_path / "agent.token"
    write_private(token, scripted.agent)
    boot = tmp_path / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text(f"{NEXT_BOOT}\n")
    where = ["--url", scripted.server.url, "--token-file", str(token), "--agent-id", AGENT]
    where += ["--procfs", str(tmp_path / "proc")]

    def code(guest: str) -> int:
        words = ["agent", "wait", "--consumer", guest, "--timeout", "1s"]
        return moorage(*words, *where, directory=tmp_path).returncode

    assert [code(guests[0]), code(guests[1])] == [0, 3]
    scripted.server.stop()
    assert code(guests[0]) == 5
