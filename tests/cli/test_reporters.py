"""Commands for groups of reporters send a request to a server and print its response."""

from uuid import uuid4

from moorage.client.reporting import Reporting
from moorage.wire.reporting import MemberWanted
from tests.cli.pooled import Cli


def test_a_group(cli: Cli) -> None:
    """Members, pins and what nobody reports are printed."""
    node, instance = str(uuid4()), str(uuid4())
    reporting = Reporting(cli.transport)
    reporting.join("shown", "a", MemberWanted(instance=instance))
    assert "shown" in cli.lines("group", "list")
    header, member = cli.lines("group", "show", "shown")
    assert header.split("\t")[:2] == ["member", "live"]
    assert member.split("\t")[:2] == ["a", "yes"]
    assert cli.answer("group", "show", "shown")["members"][0]["instance"] == instance
    assert cli.lines("group", "pin", "shown", node, "--to", "b") == ["pinned to b"]
    assert cli.answer("group", "pins", "shown") == {node: "b"}
    assert cli.lines("group", "pins", "shown") == ["node\tmember", f"{node}\tb"]
    *_, last = cli.lines("report", "status", "shown")
    assert last == "1 nodes are pinned to members that are not live"
    assert cli.lines("group", "pin", "shown", node, "--remove") == ["no longer pinned"]
    assert cli.answer("report", "status", "shown")["ghosts"] == []
    assert "either --to" in cli.refusal(2, "group", "pin", "shown", node)
    assert "no group of reporters" in cli.refusal(1, "report", "status", "nothing")
