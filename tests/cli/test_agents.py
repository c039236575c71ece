"""Commands for agents and their groups send a request to a server and print its response."""

from uuid import uuid4

import pytest

from tests.cli.pooled import Cli


def new(cli: Cli, *words: str) -> str:
    """Create an agent; return its id."""
    agent = str(uuid4())
    cli.lines("agent", "create", agent, *words)
    return agent


def test_an_agent_through_its_life(cli: Cli) -> None:
    """Each command prints what is so now; what is final is refused afterwards."""
    agent = str(uuid4())
    assert cli.lines("agent", "create", agent, "--group", "life", "--label", "row=2") == [
        f"agent {agent} is in group life, in_service"
    ]
    drain = ("agent", "drain", agent, "--reason", "new fans", "--for", "2h")
    assert cli.lines(*drain) == [f"agent {agent} is drained"]
    shown = cli.answer("agent", "show", agent)
    assert (shown["policy"], shown["policy_reason"]) == ("no_provision", "new fans")
    assert shown["policy_until"] is not None
    assert shown["labels"] == {"row": "2"}
    assert cli.lines("agent", "resume", agent) == [f"agent {agent} is in service"]
    assert "expunge it" in cli.refusal(4, "agent", "decommission", agent, "--yes")
    assert cli.lines("agent", "expunge", agent, "--yes") == [
        f"agent {agent} is expunged permanently"
    ]
    assert "permanently" in cli.refusal(4, "agent", "resume", agent)
    assert cli.lines("agent", "decommission", agent, "--yes") == [
        f"agent {agent} is decommissioned permanently"
    ]
    assert cli.answer("agent", "list", "--group", "life") == []
    (gone,) = cli.answer("agent", "list", "--state", "decommissioned")
    assert gone["id"] == agent


def test_lists_are_filtered(cli: Cli) -> None:
    """By group, policy, label and whether anything is offered."""
    one = new(cli, "--group", "list", "--label", "rack=7")
    other = new(cli, "--group", "list", "--policy", "no_provision")
    for words, expected in (
        ((), {one, other}),
        (("--policy", "no_provision"), {other}),
        (("--label", "rack=7"), {one}),
        (("--label", "rack"), {one}),
        (("--label", "rack=8"), set()),
        (("--not-offered",), {one, other}),
        (("--offered",), set()),
        (("--readiness", "unregistered", "--liveness", "fresh"), {one, other}),
    ):
        found = cli.answer("agent", "list", "--group", "list", *words)
        assert {agent["id"] for agent in found} == expected, words
    header, *rows = cli.lines("agent", "list", "--group", "list")
    assert header.split("\t")[:3] == ["id", "host", "group"]
    assert len(rows) == 2


def test_agents_that_are_equally_well_are_by_host_name(cli: Cli) -> None:
    """Ids are random: in their order nobody finds a machine."""
    agents = sorted((new(cli, "--group", "named") for _ in range(3)), reverse=True)
    for number, agent in enumerate(agents):
        facts = {"hostname": f"host-{number}", "kernel": "6.1", "version": "1"}
        body = {"boot_id": str(uuid4()), "facts": facts, "parts": []}
        cli.transport.request("POST", f"/v1/agents/{agent}/register", body)
    rows = cli.lines("agent", "list", "--group", "named")[1:]
    assert [row.split("\t")[1] for row in rows] == ["host-0", "host-1", "host-2"]


def test_an_enrolled_agent_must_be_accepted(cli: Cli) -> None:
    """Its token is printed once; a second time is a conflict."""
    agent = str(uuid4())
    (token,) = cli.lines("agent", "enroll", agent)
    assert token.startswith("moorage_")
    assert cli.answer("agent", "show", agent)["policy"] == "no_provision"
    assert "already" in cli.refusal(4, "agent", "enroll", agent)
    cli.lines("agent", "resume", agent)


def test_groups(cli: Cli) -> None:
    """Defaults are set and shown; a group with agents stays; a wait makes it suspect."""
    cli.lines("agent", "group", "set", "g", "--desired", "CUSTOM_A=80%", "--desired", "CUSTOM_B=4")
    assert cli.answer("agent", "group", "show", "g")["desired"] == {
        "CUSTOM_A": {"amount": None, "percent": 80.0},
        "CUSTOM_B": {"amount": 4, "percent": None},
    }
    assert cli.answer("agent", "group", "set", "g", "--silence", "all")["silence"] == "all"
    kept = cli.answer("agent", "group", "show", "g")
    assert (sorted(kept["desired"]), kept["silence"]) == (["CUSTOM_A", "CUSTOM_B"], "all")
    cli.lines("agent", "group", "set", "g", "--desired", "CUSTOM_A=80%")
    assert cli.answer("agent", "group", "show", "g")["silence"] == "all"
    cli.refusal(2, "agent", "group", "set", "g", "--silence", "some")
    agent = new(cli, "--group", "g")
    assert "agent" in cli.refusal(4, "agent", "group", "delete", "g")
    assert cli.answer("agent", "group", "wait", "g", "--for", "1h")["suspect_network"]
    assert not cli.answer("agent", "group", "confirm", "g")["suspect_network"]
    cli.lines("agent", "create", agent)
    assert cli.lines("agent", "group", "delete", "g") == ["deleted g"]
    assert [one["name"] for one in cli.answer("agent", "group", "list")].count("g") == 0


@pytest.mark.parametrize("amount", ["x", "80", "1%1", ""])
def test_invalid_amounts(cli: Cli, amount: str) -> None:
    """An amount that cannot be read, or that no class of the machine can have, is refused."""
    agent = new(cli)
    assert cli.refusal(2, "agent", "set-desired", agent, "CUSTOM_A", amount)
