"""`moorage provider` and `moorage consumer`, and the columns of lists that go with them."""

import json
import os
from urllib.request import Request, urlopen
from uuid import uuid4

from tests.cli.command import moorage
from tests.cli.pooled import Cli, at_terminal

NEWEST = "placement 1.39"


def placement(cli: Cli, method: str, path: str, body: object) -> None:
    """Send a request of the Placement API."""
    token = (cli.folder / "moorage.sqlite.token").read_text().strip()
    headers = {
        "X-Auth-Token": token,
        "Content-Type": "application/json",
        "OpenStack-API-Version": NEWEST,
    }
    url = f"{cli.transport.url}{path}"
    with urlopen(Request(url, json.dumps(body).encode(), headers, method=method)):
        pass


def host(cli: Cli, uuid: str, name: str) -> None:
    """Create a provider with 8 processors."""
    placement(cli, "POST", "/resource_providers", {"uuid": uuid, "name": name})
    stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
    placement(cli, "PUT", f"/resource_providers/{uuid}/inventories", stock)


def use(cli: Cli, provider: str, consumer: str) -> None:
    """Let a consumer hold a processor."""
    body = {
        "allocations": {provider: {"resources": {"VCPU": 1}}},
        "project_id": "shop",
        "user_id": "alice",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    placement(cli, "PUT", f"/allocations/{consumer}", body)


def test_a_host_is_drained_freed_and_deleted(cli: Cli) -> None:
    """By its name; a name that looks like a UUID's beginning is a name first."""
    one, other = f"aaaaaaaa-{str(uuid4())[9:]}", f"bbbbbbbb-{str(uuid4())[9:]}"
    host(cli, one, "bbbbbbbb")
    host(cli, other, "host-b")
    consumer = f"cccccccc-{str(uuid4())[9:]}"
    use(cli, one, consumer)
    assert cli.answer("provider", "show", "bbbbbbbb")["provider"]["uuid"] == one
    assert cli.answer("provider", "show", other[:13])["provider"]["name"] == "host-b"
    assert cli.answer("provider", "drain", "bbbbbbbb", "--reason", "r")["withheld"] == "drained: r"
    (row,) = cli.answer("provider", "list", "--drained")
    assert row["uuid"] == one
    assert cli.answer("provider", "drain", "bbbbbbbb", "--undo")["withheld"] is None
    (found,) = cli.answer("consumer", "list", "--provider", "bbbbbbbb", "--type", "INSTANCE")
    assert found["uuid"] == consumer
    assert cli.answer("consumer", "show", consumer[:8])["project"] == "shop"
    assert "is in use (VCPU=1)" in cli.refusal(4, "provider", "delete", "bbbbbbbb", "--yes")
    assert "write the whole id" in cli.refusal(2, "provider", "delete", other[:13], "--yes")
    assert "add --yes" in cli.refusal(2, "provider", "delete", "host-b")
    assert cli.answer("provider", "delete", "host-b", "--yes")["deleted"] == other
    assert cli.refusal(7, "provider", "show", "host-b").startswith("there is no provider")
    assert cli.refusal(7, "consumer", "show", "dddddddd").startswith("there is no consumer")


def test_providers_are_listed_by_name(cli: Cli) -> None:
    """Not by UUID, which tells a reader nothing; the capacity says why more is free than there."""
    names = ["by-name-1", "by-name-2", "by-name-3"]
    uuids = sorted((str(uuid4()) for _ in names), reverse=True)
    for uuid, name in zip(uuids, names, strict=True):
        host(cli, uuid, name)
    header, *rows = (
        line.split("\t") for line in cli.lines("provider", "list", "--name", "by-name")
    )
    assert [row[header.index("name")] for row in rows] == names
    assert [one["uuid"] for one in cli.answer("provider", "list", "--name", "by-name")] == uuids
    cli.lines("provider", "set", names[0], "--ratio", "VCPU=4")
    for command in ("show", "tree"):
        lines = [line.split("\t") for line in cli.lines("provider", command, names[0])]
        (at,) = [number for number, line in enumerate(lines) if "capacity" in line]
        found = dict(zip(lines[at], lines[at + 1], strict=True))
        figures = [found[name] for name in ("total", "capacity", "free")]
        assert figures == ["8", "32", "32"], command


def test_several_that_begin_so_are_named(cli: Cli) -> None:
    """So that the right one can be written out."""
    uuids = [f"eeeeeeee-0000-4000-8000-{number:012x}" for number in (1, 2)]
    for uuid in uuids:
        host(cli, uuid, f"e-{uuid[-1]}")
    message = cli.refusal(2, "provider", "drain", "eeeeeeee")
    assert all(f"{uuid} (e-{uuid[-1]})" in message for uuid in uuids)


def test_a_list_without_rows_says_so_on_a_terminal(cli: Cli) -> None:
    """In a pipe there are only the titles, as for every list."""
    assert cli.lines("consumer", "list", "--project", "nobody") == [
        "id\ttype\tproject\tuser\tcreated\tholds"
    ]
    with at_terminal(cli.folder, "consumer", "list", "--project", "nobody") as (command, output):
        assert b"nothing to show" in os.read(output, 4_096)
        assert command.wait(30) == 0


def test_a_lease_is_found_by_its_holder_as_it_is_shown(cli: Cli) -> None:
    """The value of the column finds the lease; an unknown one is named on standard error."""
    cli.lines("pool", "create", "holders", "--limit", "2")
    lease = cli.ask("holders", labels={"user": "alice", "host": "laptop"})
    header, row = cli.lines("lease", "list", "--pool", "holders")
    shown = dict(zip(header.split("\t"), row.split("\t"), strict=True))
    assert shown["holder"] == "alice on laptop (admin)"
    for owner in ("admin", shown["holder"]):
        assert [one["id"] for one in cli.answer("lease", "list", "--owner", owner)] == [lease]
    done = moorage("lease", "list", "--owner", "nobody", directory=cli.folder)
    assert "no listed lease has the owner or the holder 'nobody'" in done.stderr


def test_a_group_that_is_not_there_is_an_error(cli: Cli) -> None:
    """Instead of an empty list."""
    assert "nowhere" in cli.refusal(7, "agent", "list", "--group", "nowhere")


def test_entries_about_a_machine_are_found_by_its_name(cli: Cli) -> None:
    """By its name and by a prefix of its id; if several are meant, all of them are named."""
    one, other, third = (f"{digit * 8}-{str(uuid4())[9:]}" for digit in "def")
    for uuid, name in ((one, "quay-1"), (other, "quay-10"), (third, "quay-pool")):
        host(cli, uuid, name)
        cli.answer("provider", "drain", name, "--reason", f"of {name}")
    for text in ("quay-1", one[:13], one):
        (entry,) = cli.answer("audit", text)
        assert (entry["target"], entry["after"]["reason"]) == (one, "of quay-1")
    assert cli.answer("audit", "quay-1", "--who", "nobody") == []
    cli.answer("pool", "create", "quay-pool", "--limit", "1")
    assert [entry["action"] for entry in cli.answer("audit", "quay-pool")] == ["pool.put"]
    for token in ("twice", "twice"):
        cli.answer("token", "create", "--name", token, "--role", "reader")
    assert "'twice' means several things: " in (refused := cli.refusal(2, "audit", "twice"))
    assert refused.count("(token twice)") == 2 and refused.endswith("; use the id")
    done = moorage("audit", "quay-", directory=cli.folder)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
    assert "nothing has the name 'quay-'" in done.stderr


def test_what_is_not_searched_is_said(cli: Cli) -> None:
    """A search for a user says which command lists what the user's consumers hold."""
    done = moorage("find", "a-user-who-left", directory=cli.folder)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
    assert "see `moorage consumer list --user USER`" in done.stderr
