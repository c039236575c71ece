"""Commands that lengthen a lease, keep it for inspection, and hand it over."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.command import moorage
from tests.cli.pooled import Cli

Words = Callable[..., list[str]]


@pytest.fixture
def as_bob(cli: Cli) -> Words:
    """Return the words of a command of another owner, `bank/bob`."""
    wanted = {"name": "bob", "role": "user", "project_id": "bank"}
    token = cli.transport.request("POST", "/v1/tokens", wanted)["token"]
    server = ["--url", cli.transport.url, "--token", token]
    return lambda *words: [*words, *server]


def held(cli: Cli, pool: str, **more: Any) -> str:
    """Return a lease of a pool that its holder knows of."""
    lease = cli.ask(pool, **more)
    cli.admission.renew(lease)
    return lease


def now() -> datetime:
    """Return the time, as the server has it too."""
    return datetime.now(UTC)  # noqa: TID251 - compared with that of the server on this machine


def test_a_hold_is_extended(cli: Cli) -> None:
    """By a time, or to one; a preview changes nothing; what has no hold has nothing to move."""
    cli.lines("pool", "create", "longer", "--limit", "2", "--hold", "10m", "--pacing", "none")
    lease = held(cli, "longer")
    before = cli.admission.lease(lease).hold_until
    assert before is not None
    shown = cli.lines("lease", "extend", lease, "--by", "1h", "--preview")
    assert "No lease ends, and no ticket starts at once." in shown
    assert cli.admission.lease(lease).hold_until == before
    cli.lines("lease", "extend", lease, "--by", "1h")
    after = cli.admission.lease(lease).hold_until
    assert after is not None
    assert timedelta(minutes=59) < after - before < timedelta(minutes=61)
    cli.lines("lease", "extend", lease, "--to", "5m")
    sooner = cli.admission.lease(lease).hold_until
    assert sooner is not None and sooner < before
    assert "--by" in cli.refusal(2, "lease", "extend", lease)
    assert "--by" in cli.refusal(2, "lease", "extend", lease, "--by", "1m", "--to", "1m")
    cli.lines("pool", "create", "endless", "--limit", "1")
    assert "no hold" in cli.refusal(4, "lease", "extend", held(cli, "endless"), "--by", "1h")


def test_its_owner_extends_within_hold_max(cli: Cli, as_bob: Words) -> None:
    """And previews it; beyond that only an operator does."""
    words = ("--limit", "1", "--hold", "10m", "--hold-max", "1h", "--pacing", "none")
    cli.lines("pool", "create", "bounded", *words)
    wanted = {"needs": [{"pool": "bounded"}], "key": "k"}
    token = as_bob()[-1]
    other = type(cli.transport)(cli.transport.url, token)
    lease = other.request("POST", "/v1/leases", wanted)["id"]
    other.request("POST", f"/v1/leases/{lease}/renew", {})
    assert any(
        "ends at" in one
        for one in cli.lines(*as_bob("lease", "extend", lease, "--to", "50m", "--preview"))
    )
    cli.lines(*as_bob("lease", "extend", lease, "--to", "50m"))
    cli.refusal(2, *as_bob("lease", "extend", lease, "--to", "2h"))
    cli.lines("lease", "extend", lease, "--to", "2h")


def test_a_lease_is_kept(cli: Cli) -> None:
    """Until a time of day, or for a while; the list says why, and that somebody waits."""
    cli.lines("pool", "create", "kept", "--limit", "1")
    lease = held(cli, "kept")
    cli.ask("kept")
    clock = now() + timedelta(hours=2)
    (line,) = cli.lines(
        "lease", "hold", lease, "--keep-until", f"{clock:%H:%M}", "--reason", "disk"
    )
    assert line.endswith("; 1 in line for its units")
    until = cli.admission.lease(lease).hold_until
    assert until is not None and abs(until - clock) < timedelta(minutes=1, seconds=5)
    listed = "\n".join(cli.lines("lease", "list", "--pool", "kept", "--kept", "--wide"))
    assert "kept for inspection: disk; 1 in line for its units" in listed
    assert any("kept for inspection" in one for one in cli.lines("lease", "why", lease))
    shown = cli.lines("lease", "hold", lease, "--keep-until", "1h", "--preview")
    assert shown[0].startswith("It is kept for inspection for 1h")
    cli.refusal(2, "lease", "hold", lease)
    cli.refusal(2, "lease", "hold", lease, "--keep-until", "yesterday")
    assert cli.lines("lease", "release", lease) == [f"{lease} has ended: released"]


def test_a_lease_is_handed_over(cli: Cli, as_bob: Words) -> None:
    """Offered, found by the receiver, accepted into a file, and released from there."""
    cli.lines("pool", "create", "hands", "--limit", "1")
    lease = held(cli, "hands")
    (line,) = cli.lines("lease", "offer", lease, "--to", "bank/bob", "--lasts", "30m")
    assert line.startswith(f"offered {lease} to bank/bob until ")
    assert "offered to bank/bob" in "\n".join(cli.lines("lease", "list", "--wide"))
    offered = cli.answer(*as_bob("lease", "list", "--offered"))
    assert [one["id"] for one in offered] == [lease]
    file = cli.folder / "taken.json"
    words = as_bob("lease", "accept", lease, "--handle", str(file))
    (line,) = cli.lines(*words)
    new = cli.answer(*words)
    assert f"it is your lease {new['id']}; renew it before" in line
    assert (new["owner"], new["taken_from"]) == ("bank/bob", lease)
    (entry,) = json.loads(file.read_text())["leases"]
    assert (entry["id"], entry["token"]) == (new["id"], new["token"])
    cli.refusal(4, "lease", "offer", lease, "--withdraw")
    renewed = moorage(*as_bob("lease", "renew", "--handle", str(file)), directory=cli.folder)
    assert renewed.returncode == 0, renewed.stderr
    released = moorage(*as_bob("lease", "release", "--handle", str(file)), directory=cli.folder)
    assert released.returncode == 0 and not file.exists()


def test_an_offer_comes_to_nothing(cli: Cli, as_bob: Words) -> None:
    """Declined or withdrawn; then it cannot be accepted: exit code 4."""
    cli.lines("pool", "create", "nothing", "--limit", "1")
    lease = held(cli, "nothing")
    cli.refusal(4, *as_bob("lease", "accept", lease))
    cli.lines("lease", "offer", lease, "--to", "bank/bob")
    assert cli.lines(*as_bob("lease", "decline", lease)) == [f"declined {lease}: admin keeps it"]
    cli.refusal(4, *as_bob("lease", "decline", lease))
    cli.lines("lease", "offer", lease, "--to", "bank/bob")
    assert cli.lines("lease", "offer", lease, "--withdraw") == [f"{lease} is not offered any more"]
    cli.refusal(4, *as_bob("lease", "accept", lease))
    assert "--to" in cli.refusal(2, "lease", "offer", lease)
