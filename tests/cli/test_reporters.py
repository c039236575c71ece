"""Commands for groups of reporters send a request to a server and print its response."""

from datetime import UTC, datetime
from uuid import uuid4

from moorage.client.reporting import Reporting
from moorage.wire.reporting import MemberWanted, NodeReported, ObservedWanted, ReportWanted
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
    assert cli.lines("group", "pin", "shown", node, "--to", "b") == [
        "1 node pinned to b, which is not live: nobody reports it until it joins"
    ]
    assert cli.answer("group", "pins", "shown") == {node: "b"}
    assert cli.lines("group", "pins", "shown") == ["node\tmember", f"{node}\tb"]
    *_, last = cli.lines("report", "status", "shown")
    assert last == "1 node is pinned to members that are not live"
    assert cli.lines("group", "pin", "shown", node, "--remove") == ["1 node no longer pinned"]
    assert cli.lines("group", "pin", "shown", node, "--to", "a") == ["1 node pinned to a"]
    assert cli.answer("report", "status", "shown")["ghosts"] == []
    assert "either --to" in cli.refusal(2, "group", "pin", "shown", node)
    assert "begins when its first member joins" in cli.refusal(7, "report", "status", "nothing")


def test_a_group_without_reporters(cli: Cli) -> None:
    """Members that are only observed are shown; that nobody reports is no fault there."""
    reporting = Reporting(cli.transport)
    reporting.observed(
        "conductors", ObservedWanted(members=["c1", "c2"], seen_at=datetime(2026, 1, 1, tzinfo=UTC))
    )
    _, *remarks = cli.lines("report", "status", "conductors")
    assert remarks == ["observed: c1, c2"]


def test_a_group_is_deleted(cli: Cli) -> None:
    """Not while a member is live; afterwards no command finds it."""
    reporting = Reporting(cli.transport)
    instance = str(uuid4())
    reporting.join("gone", "a", MemberWanted(instance=instance))
    assert "1 live member (a)" in cli.refusal(4, "group", "delete", "gone")
    reporting.leave("gone", "a", instance)
    assert cli.lines("group", "delete", "gone") == ["deleted gone"]
    assert "gone" not in cli.lines("group", "list")
    commands = (("group", name) for name in ("show", "pins", "nodes", "ghosts", "delete"))
    for command in (*commands, ("report", "status")):
        assert "no group of reporters 'gone'" in cli.refusal(7, *command, "gone")
    reporting.join("again", "a", MemberWanted(instance=instance))
    reporting.leave("again", "a", instance)
    assert cli.answer("group", "delete", "again") == {"name": "again", "deleted": True}


def test_what_a_group_reports(cli: Cli) -> None:
    """Nodes and ghosts are printed as tables, lists and JSON."""
    reporting = Reporting(cli.transport)
    token = reporting.join("reports", "a", MemberWanted(instance=str(uuid4()))).token
    node = str(uuid4())
    seen = NodeReported(uuid=node, name=node, inventories={}, traits=[], aggregates=[])
    sent = ReportWanted(group="reports", member="a", token=token, nodes=[seen])
    assert reporting.report(sent).created == 1
    assert cli.lines("group", "nodes", "reports") == ["node\tghost", f"{node}\tno"]
    assert cli.answer("group", "nodes", "reports") == [{"uuid": node, "ghost": False}]
    assert cli.answer("group", "ghosts", "reports") == []


POOL_FILE = """
[pools."members/deploy"]
per_member = 2
member_group = "counted"
hold = "1m"
"""


def test_a_pool_that_follows_members(cli: Cli) -> None:
    """It is made and changed by options and by files, and its units are those of the members."""
    reporting = Reporting(cli.transport)
    reporting.join("counted", "a", MemberWanted(instance=str(uuid4())))
    file = cli.folder / "members.toml"
    file.write_text(POOL_FILE)
    apply = ("apply", "-f", str(file), "--yes")
    assert "created members/deploy" in cli.lines(*apply)
    assert cli.lines(*apply)[0] == "= members/deploy"
    shown = cli.answer("pool", "show", "members/deploy")
    assert (shown["limit"], shown["per_member"], shown["units"]) == (None, 2, 2)
    reporting.join("counted", "b", MemberWanted(instance=str(uuid4())))
    assert cli.lines(*apply)[0] == "= members/deploy"
    changed = cli.lines("pool", "change", "members/deploy", "--per-member", "3")
    assert changed[0].startswith("changed members/deploy: 3 for each member of counted, now 6,")
    cli.lines("pool", "change", "members/deploy", "--limit", "4")
    shown = cli.answer("pool", "show", "members/deploy")
    assert (shown["limit"], shown["per_member"], shown["units"]) == (4, None, 4)
    back = ("--per-member", "1", "--member-group", "counted")
    cli.lines("pool", "change", "members/deploy", *back)
    assert cli.answer("pool", "show", "members/deploy")["units"] == 2
    both = ("pool", "create", "members/both", "--limit", "4", *back)
    assert "omit one of them" in cli.refusal(2, *both)
    simulate = ("simulate", "--jobs", "9", "--pool", str(file))
    assert "give --limit" in cli.refusal(2, *simulate)
    cli.lines(*simulate, "--limit", "4")
