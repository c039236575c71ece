"""The line in an operator's hand: commands that move, force, release, filter and export."""

import json
from datetime import datetime, timedelta

from tests.cli.command import moorage
from tests.cli.pooled import Cli


def test_a_ticket_is_moved_and_forced(cli: Cli) -> None:
    """Both print what became of the ticket; exit code 4 if it does not wait any more."""
    cli.lines("pool", "create", "moved", "--limit", "1")
    held, one, two = (cli.ask("moved") for _ in range(3))
    assert cli.lines("lease", "move", two, "--first") == [f"moved {two}: priority 1, place 1"]
    assert cli.lines("lease", "move", two, "--priority", "-3") == [
        f"moved {two}: priority -3, place 2"
    ]
    assert cli.lines("lease", "force", one) == [f"forced {one}: granted"]
    assert "waits" in cli.refusal(4, "lease", "move", held, "--first")
    cli.refusal(2, "lease", "move", two)
    assert cli.lines("lease", "release", two) == [f"{two} has ended: withdrawn"]


def test_a_lease_is_released_by_its_id(cli: Cli) -> None:
    """An id is no file and a file no id; an unknown one is not found, another owner's forbidden."""
    cli.lines("pool", "create", "released", "--limit", "2")
    lease = cli.ask("released")
    other = cli.transport.request(
        "POST", "/v1/tokens", {"name": "ann", "role": "user", "project_id": "shop"}
    )["token"]
    cli.refusal(6, "lease", "release", lease, "--url", cli.transport.url, "--token", other)
    assert cli.lines("lease", "release", lease) == [f"{lease} has ended: released"]
    cli.refusal(7, "lease", "release", "01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605")
    assert "--handle" in cli.refusal(2, "lease", "release", "moorage.toml")


def test_lists_are_filtered_and_sorted(cli: Cli) -> None:
    """Labels filter at the server; the order is the one that was asked for."""
    cli.lines("pool", "create", "sorted", "--limit", "9")
    late, early = (cli.ask("sorted", labels={"job": "1"}, ttl=ttl) for ttl in (60.0, 30.0))
    for lease in (late, early):
        cli.admission.renew(lease)  # otherwise a grant first ends when its answer may be lost
    cli.ask("sorted", labels={"job": "2"})
    words = ["lease", "list", "--pool", "sorted", "--label", "job=1", "--mine"]
    assert [one["id"] for one in cli.answer(*words, "--sort", "age")] == [late, early]
    assert [one["id"] for one in cli.answer(*words, "--sort", "ends")] == [early, late]
    assert cli.answer(*words, "--older", "2h") == []


def test_an_export_changes_nothing(cli: Cli) -> None:
    """What is exported is applied without a change, in TOML and in YAML; a change is seen."""
    cli.lines("pool", "create", "exp/a", "--limit", "5", "--hold", "90s", "--label", 'q"=a\\b')
    cli.lines("pool", "create", "exp/b", "--limit", "3", "--hold", "1m", "--pacing", "none")
    cli.lines("pool", "create", "exp/c", "--limit", "0", "--asker", "shop/*", "--quota", "2")
    cli.lines("pool", "create", "exp/d", "--native-slots", "--hold", "1h")
    names = ["exp/a", "exp/b", "exp/c", "exp/d"]
    file = cli.folder / "pools.toml"
    file.write_text("\n".join(cli.lines("pool", "export", *names)))
    assert cli.lines("apply", "-f", str(file), "--dry-run")[-1] == (
        "0 to create, 0 to change, 4 unchanged"
    )
    other = cli.folder / "pools.yaml"
    other.write_text(json.dumps(cli.answer("pool", "export", *names)))
    assert cli.lines("apply", "-f", str(other), "--dry-run")[-1].endswith("4 unchanged")
    cli.lines("pool", "change", "exp/b", "--limit", "4")
    assert "1 to change" in cli.lines("apply", "-f", str(file), "--dry-run")[-1]
    cli.refusal(7, "pool", "export", "nope")


def test_an_export_has_the_templates(cli: Cli) -> None:
    """In place of the pools that requests have made; applying it changes none of them."""
    words = ["--limit", "2", "--hold", "45m", "--order", "newest", "--idle", "90s"]
    cli.lines("pool", "template", "create", "tpl/*", *words, "--pools-max", "7")
    cli.lines("pool", "template", "create", "tpl/b/*", "--limit", "1", "--pacing", "none")
    cli.ask("tpl/made")
    toml, yaml = cli.folder / "all.toml", cli.folder / "all.yaml"
    toml.write_text("\n".join(cli.lines("pool", "export")))
    exported = cli.answer("pool", "export")
    yaml.write_text(json.dumps(exported))
    assert exported["templates"]["tpl/*"] == {
        **{"limit": 2, "hold": "45m", "order": "newest"},
        **{"idle": "1m30s", "pools_max": 7},
    }
    assert "tpl/made" not in exported["pools"]
    assert "tpl/made" in cli.answer("pool", "export", "tpl/made")["pools"]
    for file in (toml, yaml):
        assert " 0 to change" in cli.lines("apply", "-f", str(file), "--dry-run")[-1]
    cli.lines("pool", "template", "delete", "tpl/*", "--yes")
    assert cli.lines("apply", "-f", str(toml), "--yes")[-1] == "created tpl/*"
    assert "pools_max\t7" in cli.lines("pool", "template", "show", "tpl/*")


def test_a_reason_is_shown(cli: Cli) -> None:
    """`pool show` and `pool list` have the reason of a pause, and who paused the pool."""
    cli.lines("pool", "create", "why", "--limit", "1")
    cli.lines("pool", "pause", "why", "--reason", "rack 7")
    shown = cli.lines("pool", "show", "why")
    assert "pause_reason\track 7" in shown and "paused_by\tadmin" in shown
    rows = [line.split("\t") for line in cli.lines("pool", "list")]
    assert next(row[-1] for row in rows if row[0] == "why") == "paused by admin: rack 7"


def test_a_pause_has_an_end(cli: Cli) -> None:
    """A duration, or a time of no zone in UTC; both are in the future."""
    cli.lines("pool", "create", "ends", "--limit", "1")
    said, *_ = cli.lines("pool", "pause", "ends", "--until", "2h")
    assert said.startswith("paused ends until ")
    assert cli.answer("pool", "show", "ends")["paused_until"] is not None
    made = datetime.fromisoformat(cli.answer("pool", "show", "ends")["created_at"])
    end = made + timedelta(days=3)
    cli.lines("pool", "pause", "ends", "--until", f"{end:%Y-%m-%dT%H:%M}")
    shown = datetime.fromisoformat(cli.answer("pool", "show", "ends")["paused_until"])
    assert abs(shown - end) < timedelta(minutes=2)
    for wrong in ("2020-01-01", "soon", "-1h"):
        cli.refusal(2, "pool", "pause", "ends", "--until", wrong)
    assert cli.lines("pool", "pause", "ends")[0] == "paused ends"
    assert cli.answer("pool", "show", "ends")["paused_until"] is None


def test_who_am_i(cli: Cli) -> None:
    """The command prints who calls, where, and the server's version."""
    shown = dict(line.split("\t") for line in cli.lines("whoami"))
    assert (shown["name"], shown["role"], shown["server"]) == ("admin", "admin", cli.transport.url)
    version = moorage("--version").stdout.split()[1]
    assert shown["version"] == version
