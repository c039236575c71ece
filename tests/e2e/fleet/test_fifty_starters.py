"""Fifty guests of a machine that has just booted: exactly those start whose pages are there.

A host with guests boots, and all of them want to start while its reservoir has 1 % of its pages. A
starter that only waits for enough pages for itself sees the same free pages as all the others.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.command import moorage
from tests.e2e.support.machine import AGENT, ELIGIBLE, NUMA0, PAGES, Machine

GUESTS, EACH = 50, ELIGIBLE // 100
"""Each guest needs 1 % of the machine."""

WAIT = 20.0
NEXT_BOOT = "7e3c1f52-0a55-4a0b-9d3a-3b1e5a7c9d10"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Provide a machine that is ready and has all its pages."""
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


def test_exactly_those_that_fit_start(machine: Machine) -> None:
    """All fifty ask at once; with each report the next ones pass, in the order of their places."""
    guests = booted(machine)
    with ThreadPoolExecutor(GUESTS) as pool:
        asking = {guest: pool.submit(machine.may_start, guest, WAIT) for guest in reversed(guests)}
        # The guests are unconfirmed until the machine has been prepared.
        there(machine, 2, EACH, "preparing")
        assert not any(machine.may_start(guest)["may_start"] for guest in guests)
        there(machine, 3, EACH)
        assert asking[guests[0]].result()["may_start"]
        assert [machine.may_start(guest)["may_start"] for guest in guests] == [True] + [False] * 49
        assert len(naive(machine, guests)) * EACH > EACH, "a naive starter must overshoot"
        there(machine, 4, 25 * EACH)
        first = [asking[guest].result()["may_start"] for guest in guests[:25]]
        assert first == [True] * 25
        now = [machine.may_start(guest)["may_start"] for guest in guests]
        assert now == [True] * 25 + [False] * 25
        there(machine, 5, ELIGIBLE)
        assert all(asking[guest].result()["may_start"] for guest in guests)


def test_the_command_fails_closed(machine: Machine, tmp_path: Path) -> None:
    """`moorage agent wait` passes the first guest only; without a server nobody starts."""
    guests = booted(machine)
    there(machine, 2, EACH)
    token = tmp_path / "agent.token"
    token.write_text(machine.agent)
    token.chmod(0o600)
    boot = tmp_path / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text(f"{NEXT_BOOT}\n")
    where = ["--url", machine.server.url, "--token-file", str(token), "--agent-id", AGENT]
    where += ["--procfs", str(tmp_path / "proc")]

    def code(guest: str) -> int:
        words = ["agent", "wait", "--consumer", guest, "--timeout", "1s"]
        return moorage(*words, *where, directory=tmp_path).returncode

    assert [code(guests[0]), code(guests[1])] == [0, 3]
    machine.server.stop()
    assert code(guests[0]) == 5
