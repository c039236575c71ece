"""Commands for pools and leases send a request to a server and print its response."""

import json
from pathlib import Path
from uuid import uuid4

from tests.cli.command import moorage, refusal
from tests.cli.pooled import Cli
from tests.e2e.support.carried import eventually


def test_a_pool_is_made_with_its_pacing(cli: Cli) -> None:
    """The pacing that the server chose is printed; a second pool of that name is a conflict."""
    create = ["pool", "create", "install/azure-4", "--limit", "50", "--hold", "20m"]
    assert cli.lines(*create) == [
        "created install/azure-4: limit 50, hold 20m, paced: interval 24s, burst 5"
    ]
    assert "already" in cli.refusal(4, *create)
    assert cli.lines("pool", "create", "plain", "--limit", "3") == [
        "created plain: limit 3, not paced"
    ]
    shown = dict(line.split("\t") for line in cli.lines("pool", "show", "install/azure-4"))
    assert (shown["limit"], shown["hold"], shown["pacing"]) == ("50", "20m", "24sx5")
    listed = [line.split("\t") for line in cli.lines("pool", "list")]
    assert listed[0][:3] == ["pool", "limit", "in use"]
    assert ["plain", "3", "0", "0", "3", "-", "none", "open"] in listed


def test_changed_settings_are_printed(cli: Cli) -> None:
    """The output names each changed setting as its option does."""
    cli.lines("pool", "create", "changed", "--limit", "3")
    for words, message in (
        (("--quota", "2"), "limit 3, not paced, quota 2"),
        (
            ("--quota", "none", "--cooldown", "90s"),
            "limit 3, not paced, cooldown 1m30s, quota none",
        ),
        (("--queue-max", "7", "--label", "a=b"), "limit 3, not paced, queue max 7, labels a=b"),
        (("--proxy-ttl", "2h"), "limit 3, not paced, proxy ttl 2h"),
        (("--proxy-ttl", "none"), "limit 3, not paced, proxy ttl none"),
        (("--limit", "4"), "limit 4, not paced"),
    ):
        assert cli.lines("pool", "change", "changed", *words) == [f"changed changed: {message}"]


def test_errors_are_json_with_the_option_json(cli: Cli) -> None:
    """With `--json` an error is one JSON object on standard error with the server's code."""
    cli.lines("pool", "create", "taken", "--limit", "1")
    cli.ask("taken")
    for exit_code, code, words in (
        (7, "pool_not_found", ("pool", "show", "nope")),
        (4, "pool_exists", ("pool", "create", "taken", "--limit", "3")),
        (2, "usage", ("pool", "create", "new", "--limit", "many")),
        (2, "usage", ("pool", "create", "new", "--nonsense")),
        (2, "usage", ("lease", "status", "--handle", "")),
        (2, "pool_unknown", ("lease", "acquire", "--pool", "nope")),
        (3, "timed_out", ("lease", "acquire", "--pool", "taken", "--wait", "0")),
        (5, "unreachable", ("lease", "list", "--url", "http://127.0.0.1:1")),
    ):
        done = moorage(*words, "--json", directory=cli.folder)
        assert (done.returncode, done.stdout) == (exit_code, ""), done.stderr
        (line,) = done.stderr.splitlines()
        error = json.loads(line)["error"]
        assert (error["code"], error["exit_code"]) == (code, exit_code), words
        assert error["message"]
        plain = moorage(*words, directory=cli.folder)
        assert "{" not in plain.stderr


def test_every_option_of_a_pool(cli: Cli) -> None:
    """Every setting of a pool has an option, and can be changed without the others."""
    options = {
        "--limit": "8",
        "--hold": "90s",
        "--ttl": "30",
        "--ttl-max": "2h",
        "--cooldown": "1.5s",
        "--pacing": "5sx2+1s",
        "--quota": "4",
        "--queue-max": "9",
        "--label": "site=a",
        "--expire": "keep",
        "--on-retry": "requeue",
    }
    made = cli.answer("pool", "create", "all", *(word for pair in options.items() for word in pair))
    expected = {
        "limit": 8,
        "hold": 90,
        "ttl": 30,
        "ttl_max": 7200,
        "cooldown": 1.5,
        "pacing": {"interval": 5, "burst": 2, "jitter": 1},
        "quota": 4,
        "queue_max": 9,
        "labels": {"site": "a"},
        "expire": "keep",
        "on_retry": "requeue",
    }
    assert {name: made[name] for name in expected} == expected
    changed = cli.answer("pool", "change", "all", "--quota", "none", "--pacing", "none")
    expected |= {"quota": None, "pacing": None}
    assert {name: changed[name] for name in expected} == expected
    for wrong in (["--limit", "x"], ["--hold", "soon"], ["--pacing", "5s6"], ["--label", "a"]):
        done = moorage("pool", "change", "all", *wrong, directory=cli.folder)
        assert (done.returncode, done.stdout) == (2, "")
    assert "limit" in cli.refusal(2, "pool", "create", "unlimited")
    assert "nothing to change" in cli.refusal(2, "pool", "change", "all")


def test_a_chosen_pacing_follows_the_limit(cli: Cli) -> None:
    """A pacing that was derived from limit and hold follows them; an explicit pacing stays."""
    cli.answer("pool", "create", "auto", "--limit", "10", "--hold", "60")
    changed = cli.answer("pool", "change", "auto", "--limit", "20")
    assert changed["pacing"] == {"interval": 3, "burst": 2, "jitter": 0}
    cli.answer("pool", "change", "auto", "--pacing", "1s")
    changed = cli.answer("pool", "change", "auto", "--limit", "10")
    assert changed["pacing"] == {"interval": 1, "burst": 1, "jitter": 0}


def test_a_pacing_comes_with_the_first_hold(cli: Cli) -> None:
    """The first hold adds a pacing, as if the pool had been created with it.

    An explicit `none` stays until a pacing is set.
    """
    cli.answer("pool", "create", "unheld/auto", "--limit", "50")
    change = ["pool", "change", "unheld/auto"]
    paced = "changed unheld/auto: limit 50, hold 20m, paced: interval 24s, burst 5"
    quota = "changed unheld/auto: limit 50, not paced, quota 5"
    assert cli.lines(*change, "--quota", "5") == [quota]
    assert cli.lines(*change, "--hold", "20m") == [paced]
    assert cli.lines(*change, "--hold", "none") == ["changed unheld/auto: limit 50, not paced"]
    unpaced = "changed unheld/auto: limit 50, hold 20m, not paced"
    assert cli.lines(*change, "--hold", "20m", "--pacing", "none") == [unpaced]
    assert cli.lines(*change, "--quota", "6") == [f"{unpaced}, quota 6"]
    assert cli.lines(*change, "--hold", "10m") == [unpaced.replace("20m", "10m")]
    assert cli.lines(*change, "--hold", "20m", "--pacing", "auto") == [paced]


def test_a_pool_is_paused_resumed_and_deleted(cli: Cli) -> None:
    """Each command prints what it has done, and fails for a pool that does not exist."""
    cli.answer("pool", "create", "brief", "--limit", "1")
    said, note = cli.lines("pool", "pause", "brief")
    assert said == "paused brief" and "--unless-paused" in note
    assert cli.answer("pool", "show", "brief")["paused"] is True
    assert cli.lines("pool", "resume", "brief") == ["resumed brief"]
    lease = cli.ask("brief")
    assert "in use" in cli.refusal(4, "pool", "delete", "brief")
    cli.admission.release(lease)
    assert cli.answer("pool", "delete", "brief") == {"name": "brief", "deleted": True}
    for command in ("show", "report", "pause", "resume", "delete"):
        assert "brief" in cli.refusal(7, "pool", command, "brief")


def test_leases_are_listed_shown_and_revoked(cli: Cli) -> None:
    """The list shows holders and tickets with the reason for waiting; a revoked lease has ended."""
    cli.answer("pool", "create", "held", "--limit", "1")
    holder, ticket = cli.ask("held"), cli.ask("held", labels={"job": "17"})
    header, *rows = (line.split("\t") for line in cli.lines("lease", "list", "--pool", "held"))
    assert header == ["id", "holder", "state", "needs", "place", "asked", "ends", "reason"]
    assert [row[:5] for row in rows] == [
        [holder, "admin", "granted", "held=1", "-"],
        [ticket, "job 17 (admin)", "waiting", "held=1", "1"],
    ]
    assert len(rows[1][7]) > 1
    only = cli.answer("lease", "list", "--pool", "held", "--state", "waiting", "--owner", "admin")
    assert [lease["id"] for lease in only] == [ticket]
    shown = dict(line.split("\t") for line in cli.lines("lease", "show", ticket))
    assert (shown["state"], shown["labels"], shown["position"]) == ("waiting", "job=17", "1")
    assert cli.answer("lease", "show", holder)["token"]
    assert cli.lines("lease", "revoke", holder, "--reason", "it is late") == [
        f"{holder} has ended: revoked"
    ]
    ended = cli.answer("lease", "list", "--pool", "held", "--state", "ended")
    assert [(lease["id"], lease["cause"]) for lease in ended] == [(holder, "revoked")]
    assert cli.answer("lease", "show", ticket)["state"] == "granted"
    assert "no lease" in cli.refusal(7, "lease", "show", str(uuid4()))


def test_leases_of_an_unknown_or_empty_pool(cli: Cli) -> None:
    """An unknown pool is refused as by `pool show`; a pool without leases has an empty list."""
    for more in ([], ["--state", "ended"]):
        output = cli.refusal(7, "lease", "list", "--pool", "nosuch", *more)
        assert output == cli.refusal(7, "pool", "show", "nosuch")
    cli.answer("pool", "create", "unheld", "--limit", "1")
    assert cli.answer("lease", "list", "--pool", "unheld") == []


def test_outcomes_are_reported(cli: Cli) -> None:
    """Reported outcomes are counted in the pool's report."""
    cli.answer("pool", "create", "told", "--limit", "2")
    first, second = cli.ask("told"), cli.ask("told")
    assert cli.lines("lease", "outcome", first, "ok") == [f"{first}: ok"]
    cli.answer("lease", "outcome", second, "throttled", "--detail", "429")
    cli.admission.release(first)
    report = cli.answer("pool", "report", "told")
    assert (report["leases"], report["causes"]) == (1, {"released": 1})
    printed = cli.lines("pool", "report", "told")
    assert printed[0] == "1 lease ended within the last 24 hours"
    assert "limit\tstarts per minute\tok\tfailed\tthrottled" in printed
    done = moorage("lease", "outcome", first, "fine", directory=cli.folder)
    assert done.returncode == 2


def test_a_pool_needs_a_limit(cli: Cli) -> None:
    """The error names the missing option; `none` is not a valid limit."""
    assert "--limit 50" in cli.refusal(2, "pool", "create", "limitless", "--hold", "20m")
    done = moorage("pool", "create", "limitless", "--limit", "none", directory=cli.folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "'none' is not a valid integer" in done.stderr
    assert "no pool" in cli.refusal(7, "pool", "show", "limitless")


def test_top_once(cli: Cli) -> None:
    """Without a terminal `top` prints once: the first ticket of each line, and why it waits."""
    cli.answer("pool", "create", "first", "--limit", "1")
    cli.ask("first")
    low = cli.ask("first")
    high = cli.ask("first", priority=5)
    for command in (["top"], ["top", "--once"]):
        header, *rows = (line.split("\t") for line in cli.lines(*command))
        assert header == ["pool", "in use", "waiting", "state", "first", "eta", "reason"]
        (row,) = (row for row in rows if row[0] == "first")
        assert row[1:4] == ["1/1", "2", "full"]
        assert row[4].startswith("admin ")
        assert row[6] == "first in line; limit: 1 of 1 unit of first is held by admin"
    output = {one["name"]: one["first"] for one in cli.answer("top")}
    assert output["first"]["id"] == high
    shown = dict(line.split("\t") for line in cli.lines("pool", "show", "first"))
    assert (shown["first"], shown["reason"]) == (row[4], row[6])
    for lease in (high, low):
        cli.admission.release(lease)


def test_top_shows_leases_that_are_not_renewed(cli: Cli) -> None:
    """If the pool keeps units of leases that are not renewed, `top` shows how many there are."""
    cli.answer("pool", "create", "silent", "--limit", "1", "--expire", "keep", "--ttl", "1s")
    lease = cli.ask("silent")

    def state() -> str | None:
        (row,) = (line for line in cli.lines("top") if line.startswith("silent\t"))
        return output if "unheard" in (output := row.split("\t")[3]) else None

    assert eventually(state) == "full, 1 unheard"
    cli.admission.revoke(lease)


def test_without_a_server(tmp_path: Path) -> None:
    """Commands that need a server end with exit code 5."""
    where = ["--database", f"sqlite:///{tmp_path}/moorage.sqlite"]
    file = tmp_path / "pools.toml"
    file.write_text("[pools.a]\nlimit = 1\n")
    for command in (
        ["pool", "list"],
        ["pool", "create", "a", "--limit", "1"],
        ["lease", "list"],
        ["top"],
        ["apply", "-f", str(file), "--yes"],
    ):
        assert "server" in refusal(5, *command, *where)


def test_a_reader_changes_nothing(cli: Cli) -> None:
    """A reader may list, but not change anything."""
    made = cli.answer("token", "create", "--name", "r", "--role", "reader")
    as_reader = ["--token", made["token"]]
    assert isinstance(json.loads(output_of(cli, "pool", "list", "--json", *as_reader)), list)
    assert "operator" in cli.refusal(6, "pool", "create", "x", "--limit", "1", *as_reader)


def output_of(cli: Cli, *arguments: str) -> str:
    """Run a command that succeeds; return what it prints."""
    done = moorage(*arguments, directory=cli.folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bounds_for_users(cli: Cli) -> None:
    """Bounds for users are set, shown and removed with options, and set the same way in a file."""
    bounds = ["--hold-max", "2h", "--priority-max", "5", "--queue-max-per-owner", "3"]
    askers = ["--asker", "ci/*", "--asker", "role:service"]
    (line,) = cli.lines("pool", "create", "b", "--limit", "1", "--hold", "1h", *bounds, *askers)
    for message in (
        "hold max 2h",
        "priority max 5",
        "queue max per owner 3",
        "askers ci/*,role:service",
    ):
        assert message in line
    shown = dict(line.split("\t") for line in cli.lines("pool", "show", "b"))
    assert (shown["hold_max"], shown["askers"]) == ("2h", "ci/*,role:service")
    (line,) = cli.lines("pool", "change", "b", "--asker", "none", "--hold-max", "none")
    assert "askers none" in line and "hold max none" in line
    file = cli.folder / "pools.toml"
    file.write_text(
        '[pools.b]\nlimit = 1\nhold = "1h"\nhold_max = "3h"\nqueue_max_per_owner = 3\n'
        'askers = ["p/bob"]\npriority_max = "none"\n'
    )
    cli.lines("apply", "--yes", "-f", str(file))
    shown = dict(line.split("\t") for line in cli.lines("pool", "show", "b"))
    assert (shown["hold_max"], shown["askers"], shown["priority_max"]) == ("3h", "p/bob", "-")
    assert cli.lines("apply", "--dry-run", "-f", str(file))[0] == "= b"
