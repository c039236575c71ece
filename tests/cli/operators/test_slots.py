"""Commands for named slots: made, listed, labelled, drained and asked for by label."""

from pathlib import Path

import pytest

from tests.cli.command import moorage
from tests.cli.pooled import Cli

HEAD = ["slot", "state", "since", "holder", "lease", "labels", "reason"]


@pytest.fixture
def clusters(cli: Cli, request: pytest.FixtureRequest) -> str:
    """Return the name of a new pool with a slot in the EU and one in the US."""
    name = f"clusters/{request.node.name.removeprefix('test_')}"
    created = f"created {name}: as many units as slots, not paced"
    assert cli.lines("pool", "create", name, "--native-slots") == [created]
    for region in ("eu", "us"):
        words = (
            "pool",
            "slot",
            "add",
            name,
            f"{region}-{request.node.name.replace('[', '.')}"[:60],
        )
        assert len(cli.lines(*words, "--label", f"region={region}")) == 2
    return name


def rows(cli: Cli, pool: str) -> list[dict[str, str]]:
    """Return the lines of `pool slots` by column."""
    head, *lines = [line.split("\t") for line in cli.lines("pool", "slots", pool)]
    assert head == HEAD
    return [dict(zip(HEAD, line, strict=True)) for line in lines]


def test_slots_and_their_holders(cli: Cli, clusters: str) -> None:
    """`pool slots` prints state, holder and time of each slot, as the server says."""
    eu, us = rows(cli, clusters)
    assert (eu["state"], eu["holder"], eu["labels"]) == ("free", "-", "region=eu")
    lease = cli.ask(clusters)
    held = next(row for row in rows(cli, clusters) if row["state"] == "held")
    assert (held["holder"], held["lease"]) == ("admin", lease)
    granted = cli.answer("lease", "show", lease)["granted_at"]
    assert held["since"] == f"{granted[:19]}+00:00"
    assert us["slot"] != eu["slot"]
    listed = cli.answer("pool", "slots", clusters)
    assert {one["name"]: one["lease"] for one in listed}[held["slot"]] == lease


@pytest.mark.parametrize("region", ["eu", "us"])
def test_any_slot_of_a_region(cli: Cli, tmp_path: Path, region: str) -> None:
    """`--slot-label region=eu` gets a slot there, however many others are free; with none, none.

    The control: without the option the request gets a slot, though none of the region is free.
    """
    name = f"by-label/{region}"
    cli.lines("pool", "create", name, "--native-slots")
    cli.lines("pool", "slot", "add", name, f"{region}-a", "--label", f"region={region}")
    cli.lines("pool", "slot", "add", name, *(f"{region}-x{n}" for n in range(3)))
    acquire = ["lease", "acquire", "--pool", name, "--wait", "0"]
    wish = ["--slot-label", f"region={region}"]
    (got,) = cli.answer(*acquire, *wish, "--handle", str(tmp_path / "one"))["leases"]
    shown = dict(line.split("\t") for line in cli.lines("lease", "show", got["id"]))
    assert shown["slots"] == f"{name}={region}-a"
    assert shown["needs"] == f"{name}[region={region}]=1"
    assert "not granted" in cli.refusal(3, *acquire, *wish, "--handle", str(tmp_path / "two"))
    (got,) = cli.answer(*acquire, "--handle", str(tmp_path / "three"))["leases"]
    assert cli.answer("lease", "show", got["id"])["slots"][name][0].startswith(f"{region}-x")


def test_a_command_runs_on_a_slot_with_the_label(cli: Cli, clusters: str) -> None:
    """`moorage run --slot-label` passes the name of such a slot to its command."""
    words = ["run", "--pool", clusters, "--slot-label", "region=us", "--", "sh", "-c"]
    done = moorage(*words, 'echo "$MOORAGE_LEASE_SLOTS"', directory=cli.folder)
    assert done.returncode == 0, done.stderr
    assert "us-" in done.stdout and "eu-" not in done.stdout


def test_impossible_labels_and_wrong_words(cli: Cli, clusters: str) -> None:
    """What no slot can serve, and what is not NAME=VALUE, is refused with the reason."""
    acquire = ["lease", "acquire", "--pool", clusters, "--wait", "0"]
    assert "region=mars" in cli.refusal(3, *acquire, "--slot-label", "region=mars")
    assert "not NAME=VALUE" in cli.refusal(2, *acquire, "--slot-label", "eu")
    cli.lines("pool", "create", "numbered", "--limit", "1")
    several = [*acquire, "--pool", "numbered", "--slot-label", "region=eu"]
    assert "POOL:NAME=VALUE" in cli.refusal(2, *several)
    assert "no slash" in cli.refusal(2, "pool", "slot", "add", clusters, "a/b")


def test_slots_are_drained_resumed_and_removed(cli: Cli, clusters: str) -> None:
    """A drained slot is granted to nobody; what is held goes, or stays, once it is released."""
    eu, us = (row["slot"] for row in rows(cli, clusters))
    lease = cli.ask(clusters)
    held = next(row["slot"] for row in rows(cli, clusters) if row["state"] == "held")
    other = us if held == eu else eu
    assert "drain the slot" in cli.refusal(4, "pool", "slot", "remove", clusters, held)
    said = cli.lines("pool", "slot", "drain", clusters, held, "--reason", "disk fails")
    assert said == [f"draining {held}: admin holds it; once released, it is removed"]
    row = next(row for row in rows(cli, clusters) if row["slot"] == held)
    assert (row["state"], row["reason"]) == ("draining", "disk fails")
    cli.lines("lease", "revoke", lease)
    assert [row["slot"] for row in rows(cli, clusters)] == [other]
    (line,) = cli.lines("pool", "slot", "drain", clusters, other, "--keep")
    assert line.startswith(f"drained {other}: it is free")
    listed = [line.split("\t") for line in cli.lines("pool", "list")]
    assert next(cells for cells in listed if cells[0] == clusters)[-1] == "1 drained"
    refused = cli.refusal(3, "lease", "acquire", "--pool", clusters, "--wait", "0")
    assert "the limit is now 0, 1 is drained" in refused
    assert cli.lines("pool", "slot", "resume", clusters, other) == [f"resumed {other}"]
    assert cli.lines("pool", "slot", "label", clusters, other, "--label", "tier=big") == [
        f"labelled {other}: tier=big"
    ]
    assert cli.lines("pool", "slot", "remove", clusters, other) == [f"removed {other}"]
    assert rows(cli, clusters) == []
