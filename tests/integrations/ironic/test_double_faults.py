"""What tests can do with the double of Ironic: move its time, let it fail, read what happened."""

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from subprocess import PIPE, Popen
from urllib.request import Request, urlopen

import pytest
from aiohttp import ClientSession

from tests.support.ironic import ROOT
from tests.support.ironic_double.faults import Fault, Work
from tests.support.ironic_double.server import IronicDouble

VERSION = {"X-OpenStack-Ironic-API-Version": "1.95"}


class Client:
    """Asks a double as an integration does."""

    def __init__(self, double: IronicDouble, session: ClientSession) -> None:
        self.double, self._session = double, session

    async def ask(self, node: str, target: str) -> int:
        """Ask for a state; return the status."""
        path = f"/v1/nodes/{node}/states/provision"
        body = {"target": target}
        async with self._session.put(self.double.url + path, json=body) as answer:
            return answer.status

    async def states(self) -> list[str]:
        """List the states of all nodes."""
        path = "/v1/nodes?fields=provision_state"
        async with self._session.get(self.double.url + path) as answer:
            return [node["provision_state"] for node in (await answer.json())["nodes"]]


def ask_once(url: str) -> None:
    """Ask for a state over a connection of its own."""
    body = b'{"target": "active"}'
    headers = {**VERSION, "Content-Type": "application/json"}
    path = "/v1/nodes/node-1/states/provision"
    with urlopen(Request(url + path, body, headers, method="PUT")) as answer:
        assert answer.status == 202


def play(act: Callable[[Client], Awaitable[None]], double: IronicDouble) -> None:
    """Run an act with a double, by hand-driven time."""

    async def run() -> None:
        async with double, ClientSession(headers=VERSION) as session:
            await act(Client(double, session))

    asyncio.run(run())


def test_time_is_moved_by_hand() -> None:
    """Work lasts exactly as long as it should, and the log says when which node was busy."""

    async def act(client: Client) -> None:
        double = client.double
        assert await client.ask("node-1", "active") == 202
        await double.advance(299)
        assert await client.states() == ["deploying", "available"]
        assert await client.ask("node-2", "active") == 202
        await double.advance(1)
        assert await client.states() == ["active", "deploying"]
        assert await client.ask("node-1", "deleted") == 202
        await double.advance(1_000)
        assert double.busy_history == [
            (0, "node-1", "deploying"),
            (299, "node-2", "deploying"),
            (300, "node-1", "active"),
            (300, "node-1", "deleting"),
            (360, "node-1", "cleaning"),
            (420, "node-1", "available"),
            (599, "node-2", "active"),
        ]
        assert double.fleet.busiest == 2
        assert double.counts == {"provision": 3, "list": 2}
        assert double.requests[0].path == "/v1/nodes/node-1/states/provision"

    play(act, IronicDouble(2))


def test_work_waits_for_the_agent() -> None:
    """With agents a node passes through the states in which Ironic waits for them."""

    async def act(client: Client) -> None:
        await client.ask("node-1", "active")
        await client.double.advance(10_000)
        states = [state for _, _, state in client.double.busy_history]
        assert states == ["deploying", "wait call-back", "deploying", "active"]

    play(act, IronicDouble(1, agent=True))


def test_work_fails_on_demand() -> None:
    """The next work on the node fails, the one after it does not."""

    async def act(client: Client) -> None:
        client.double.fleet.find("node-1").fails = True
        for state in ("deploy failed", "active"):
            await client.ask("node-1", "active")
            await client.double.advance(300)
            assert await client.states() == [state]

    play(act, IronicDouble(1))


def test_short_work_is_never_seen() -> None:
    """A deployment that takes no time is over before anybody can read the node."""

    async def act(client: Client) -> None:
        client.double.fleet.seconds["deploying"] = 0
        await client.ask("node-1", "active")
        assert await client.states() == ["active"]
        assert client.double.fleet.busiest == 1

    play(act, IronicDouble(1))


def test_a_restart_lets_work_fail() -> None:
    """A deployment does not survive it, and does not end later."""

    async def act(client: Client) -> None:
        await client.ask("node-1", "active")
        client.double.fleet.restart()
        await client.double.advance(300)
        assert await client.states() == ["deploy failed"]

    play(act, IronicDouble(1))


def test_refusals_for_a_time() -> None:
    """An outage and a lock end by themselves."""

    async def act(client: Client) -> None:
        double = client.double
        double.outage(60)
        assert await client.ask("node-1", "active") == 503
        double.fleet.lock("node-1", 120)
        await double.advance(60)
        assert await client.ask("node-1", "active") == 409
        await double.advance(60)
        assert await client.ask("node-1", "active") == 202

    play(act, IronicDouble(1))


@pytest.mark.parametrize(("work", "state"), [("first", "deploying"), ("never", "available")])
def test_a_lost_answer(work: Work, state: str) -> None:
    """The connection is closed without an answer, after or without the work."""

    async def act(client: Client) -> None:
        client.double.faults.pending.append(Fault("provision", work=work, answer="drop"))
        # Not with aiohttp, which would send the request a second time.
        with pytest.raises(ConnectionError):
            await asyncio.to_thread(ask_once, client.double.url)
        assert client.double.counts["provision"] == 1
        assert await client.states() == [state]

    play(act, IronicDouble(1))


def test_work_that_starts_after_an_error() -> None:
    """The request is refused, and carried out a minute later."""

    async def act(client: Client) -> None:
        fault = Fault("provision", node="node-1", work="late", late=60, answer=500)
        client.double.faults.pending.append(fault)
        assert await client.ask("node-1", "active") == 500
        await client.double.advance(59)
        assert await client.states() == ["available"]
        await client.double.advance(1)
        assert await client.states() == ["deploying"]

    play(act, IronicDouble(1))


@pytest.mark.parametrize(("work", "began"), [("first", 0), ("last", 30)])
def test_a_late_answer(work: Work, began: float) -> None:
    """The work starts before the answer is held back, or when it is sent, to the second."""

    async def act(client: Client) -> None:
        double = client.double
        double.faults.pending.append(Fault("provision", wait=30, work=work))
        asked = asyncio.create_task(client.ask("node-1", "active"))
        await double.received("provision")
        await double.advance(100)
        assert await asked == 202
        assert double.busy_history[0] == (began, "node-1", "deploying")

    play(act, IronicDouble(1))


def test_a_slow_list_shows_what_was() -> None:
    """A list that was read before the work began arrives after it."""

    async def act(client: Client) -> None:
        double = client.double
        double.faults.pending.append(Fault("list", wait=30))
        listed = asyncio.create_task(client.states())
        await double.received("list")
        assert await client.ask("node-1", "active") == 202
        await double.advance(30)
        assert await listed == ["available"]
        assert await client.states() == ["deploying"]

    play(act, IronicDouble(1))


def test_unknown_faults_are_refused() -> None:
    """A fault that never happens would make a test pass for the wrong reason."""
    with pytest.raises(ValueError, match="no such fault"):
        Fault("provisions")


def test_a_token_can_be_required() -> None:
    """Without it, requests are refused."""

    async def act(client: Client) -> None:
        assert await client.ask("node-1", "active") == 401

    play(act, IronicDouble(1, token="secret"))


def test_it_runs_as_a_process() -> None:
    """Its first line is its address; time runs faster than real time, or is moved by requests."""
    command = [sys.executable, "-m", "tests.support.ironic_double", "--nodes", "1"]
    with Popen([*command, "--scale", "100000"], cwd=ROOT, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        ask_once(url)
        with urlopen(Request(f"{url}/_double/advance", b'{"seconds": 400}')) as answer:
            assert answer.status == 200
        with urlopen(f"{url}/_double/history") as answer:
            history = json.loads(answer.read())
        assert [change["state"] for change in history["changes"]] == ["deploying", "active"]
        assert history["busiest"] == 1
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 0


def test_time_can_run() -> None:
    """With a scale, work ends without anybody moving the time."""

    async def act(client: Client) -> None:
        await client.ask("node-1", "active")
        ended = client.double.agenda.wait(300, lambda: None)
        await asyncio.wait_for(ended, 30)
        assert await client.states() == ["active"]

    play(act, IronicDouble(1, scale=10_000.0))
