"""One unreadable row of an agent: the others are served, and every error names the row."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from moorage.core.errors import Code, Error
from moorage.core.fleet.model import Agent, Liveness
from tests.service.fleet.alone import play
from tests.service.fleet.machines import agent_id, ready, report
from tests.service.fleet.pair import outcomes
from tests.service.fleet.test_liveness import TTL, liveness, offered, passing
from tests.service.running import TESTER, Running, claim

SICK = agent_id(2)


@contextmanager
def unreadable(path: Path) -> Iterator[None]:
    """Make the row of the second agent unreadable for a while."""
    with closing(apsw.Connection(str(path / "m.sqlite"))) as rows:
        good = rows.execute("SELECT body FROM agent WHERE uuid = ?", (SICK,)).get
        rows.execute("UPDATE agent SET body = '{}' WHERE uuid = ?", (SICK,))
        yield
        rows.execute("UPDATE agent SET body = ? WHERE uuid = ?", (good, SICK))


async def named(awaitable: Awaitable[object]) -> None:
    """The call must be refused for now, with a message that names the row."""
    with pytest.raises(Error) as caught:
        await awaitable
    assert caught.value.code is Code.UNAVAILABLE
    assert f"the row of agent {SICK} is damaged" in caught.value.message
    assert "`moorage db check`" in caught.value.message


def with_three(path: Path, scenario: Callable[[Running], Awaitable[None]]) -> None:
    """Play a scenario with three machines that offer 100 pages each."""

    async def begun(one: Running) -> None:
        for n in (1, 2, 3):
            await ready(one.service.fleet, n)
        await scenario(one)

    play(path, begun)


def test_requests_that_need_it_name_it(tmp_path: Path) -> None:
    """Reads and messages of this agent fail; those of others in the same batch do not."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        host = await one.provider(1, VCPU=8)
        with unreadable(tmp_path):
            await named(fleet.queries.agent(SICK))
            await named(fleet.report(SICK, report(2, 2, 50), TESTER))
            sick, other, claimed = await outcomes(
                fleet.report(SICK, report(2, 2, 50), TESTER),
                fleet.report(agent_id(3), report(3, 2, 50), TESTER),
                one.submit(claim(1, host, VCPU=1)),
            )
            assert sick is Code.UNAVAILABLE
            assert isinstance(other, Agent)
            assert claimed is None
            assert (await fleet.queries.agent(agent_id(1))).agent.number == 1
            found = await one.service.operations.check()
            assert f"agent {SICK}: its body cannot be read" in found[0]
        assert (await fleet.report(SICK, report(2, 2, 50), TESTER)).report_generation == 2

    with_three(tmp_path, scenario)


def test_silence_of_the_others_is_seen(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What other silent machines have is withdrawn; the log names the row that keeps one open."""

    async def scenario(one: Running) -> None:
        with unreadable(tmp_path):
            await passing(one, 2 * TTL, 3)
            fleet = one.service.fleet
            states = [liveness(fleet, n) for n in (1, 2, 3)]
            assert states == [Liveness.LATE, Liveness.FRESH, Liveness.FRESH]
            assert offered(one.service, 1) == (0, True)
        await passing(one, 1_000_000)
        assert liveness(fleet, 2) is Liveness.LATE

    with_three(tmp_path, scenario)
    assert f"the row of agent {SICK} is damaged" in caplog.text


def test_a_service_starts_without_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """All other machines are served, and `db check` can be run to find the row."""

    async def nothing(one: Running) -> None:
        assert offered(one.service, 2) == (100, False)

    async def again(one: Running) -> None:
        assert {agent.uuid for agent in one.service.fleet.directory.agents()} == {
            agent_id(1),
            agent_id(3),
        }
        assert {group.name for group in one.service.fleet.directory.groups()} == {"default"}
        await one.service.fleet.report(agent_id(3), report(3, 2, 50), TESTER)
        await named(one.service.fleet.report(SICK, report(2, 2, 50), TESTER))
        one.fatal.append(RuntimeError("the test has damaged the database"))

    with_three(tmp_path, nothing)
    with unreadable(tmp_path):
        play(tmp_path, again)
    assert (
        f"continuing without a row that cannot be read: the row of agent {SICK} is damaged"
        in caplog.text
    )
    play(tmp_path, nothing)
