"""Filters of the list of agents, on both engines."""

from moorage.service.fleet.queries import AgentFilter
from moorage.service.ids import ids_with
from tests.service.fleet.machines import agent_id, agent_put
from tests.service.fleet.pair import Pair, play
from tests.service.running import TESTER

HOSTILE = ["$", "$1", '"', 'row"', "a.b", "a\\", "[0]", "$.labels", "%", "é", "' OR 1=1 --", "\\n"]
"""Names of labels that mean something in JSON, in its paths, or in SQL."""


def test_any_name_of_a_label_is_found(url: str) -> None:
    """Exactly the agents that have the label are listed, whatever characters it has."""

    async def scenario(pair: Pair) -> None:
        fleet, _ = pair.fleets
        await agent_put(fleet, agent_id(0), "default", {"row": "1", "a": "1"}, None, TESTER)

        async def found(name: str, value: str | None = None) -> list[str]:
            wanted = AgentFilter(label=name, label_value=value)
            views, _ = await fleet.queries.agents(wanted, None, 100)
            return [view.agent.uuid for view in views]

        for n, name in enumerate(HOSTILE, 1):
            assert await found(name) == []
            await agent_put(fleet, agent_id(n), "default", {name: name, "row": "1"}, None, TESTER)
            assert await found(name) == [agent_id(n)]
            assert await found(name, name) == [agent_id(n)]
            assert await found(name, "1") == []
        assert len(await found("row", "1")) == len(HOSTILE) + 1

    play(url, scenario)


def test_ids_that_begin_with_a_text(url: str) -> None:
    """Exactly those, in pages of any size, whether the text is short or a whole id."""

    async def scenario(pair: Pair) -> None:
        fleet, _ = pair.fleets
        for n in (9, 10, 11, 20):
            await agent_put(fleet, agent_id(n), "default", {"row": f"{n % 2}"}, None, TESTER)

        async def found(prefix: str, limit: int, **more: str) -> list[str]:
            wanted = AgentFilter(ids=ids_with(prefix), **more)  # type: ignore[arg-type] # of str
            cursor, seen = None, []
            while True:
                views, cursor = await fleet.queries.agents(wanted, cursor, limit)
                assert len(views) <= limit
                seen += [view.agent.uuid for view in views]
                if cursor is None:
                    return seen

        for limit in (1, 2, 9):
            assert await found("00000010", limit) == [agent_id(10)]
            assert await found(agent_id(11), limit) == [agent_id(11)]
            assert await found("00000011-EEEE", limit) == [agent_id(11)]
            assert await found("00000012", limit) == []
        assert await found("00000010", 9, label="row", label_value="1") == []
        assert await found("00000011", 9, label="row", label_value="1") == [agent_id(11)]

    play(url, scenario)
