"""`moorage provider tree` and `set`, `moorage consumer release`, `moorage usage`."""

import os
from uuid import uuid4

from moorage.wire.admission import AllocationsWanted
from tests.cli.command import moorage
from tests.cli.operators.test_ledger import host, placement, use
from tests.cli.pooled import Cli, at_terminal, exit_code_of, read_until


def ids(count: int) -> list[str]:
    """Return new UUIDs."""
    return [str(uuid4()) for _ in range(count)]


def undone(cli: Cli, lines: list[str]) -> None:
    """Do what the last line says."""
    said, _, command = lines[-1].partition(": moorage ")
    assert said == "undo it with"
    cli.lines(*command.split(), "--yes")


def test_values_of_a_provider_are_changed_and_changed_back(cli: Cli) -> None:
    """Only the named ones change; the reason is in the audit log; the undo restores all."""
    uuid, aggregate = ids(2)
    host(cli, uuid, f"set-{uuid}")
    before = cli.answer("provider", "show", uuid)["provider"]
    words = ["--ratio", "VCPU=4", "--reserved", "VCPU=2", "--add-aggregate", aggregate.upper()]
    words += ["--add-trait", "HW_CPU_X86_AVX2", "--name", f"new-{uuid}", "--reason", "night"]
    dry = cli.answer("provider", "set", f"set-{uuid}", *words, "--dry-run")
    assert dry["reshape"] is None and len(dry["changes"]) == 5
    assert cli.answer("provider", "show", uuid)["provider"] == before
    lines = cli.lines("provider", "set", f"set-{uuid}", *words)
    assert lines[0].startswith(f"new-{uuid}: ")
    assert "VCPU allocation_ratio 1 -> 4; VCPU reserved 0 -> 2" in lines[0]
    assert "trait +HW_CPU_X86_AVX2" in lines[0] and f"aggregate +{aggregate}" in lines[0]
    after = cli.answer("provider", "show", f"new-{uuid}")["provider"]
    assert after["inventories"]["VCPU"]["capacity"] == (8 - 2) * 4
    assert after["inventories"]["VCPU"]["total"] == 8
    assert (after["traits"], after["aggregates"]) == (["HW_CPU_X86_AVX2"], [aggregate])
    assert [one["reason"] for one in cli.answer("reshape", "list", "--limit", "1")] == ["night"]
    undone(cli, lines)
    restored = cli.answer("provider", "show", uuid)["provider"]
    kept = ("name", "traits", "aggregates", "inventories")
    assert {name: restored[name] for name in kept} == {name: before[name] for name in kept}


def test_what_cannot_be_changed(cli: Cli) -> None:
    """What guests use stays covered, an unknown class is named, and nothing is no change."""
    uuid, guest = ids(2)
    host(cli, uuid, f"kept-{uuid}")
    use(cli, uuid, guest)
    assert "nothing to change" in cli.refusal(2, "provider", "set", uuid)
    assert "has no inventory of DISK_GB" in cli.refusal(
        4, "provider", "set", uuid, "--reserved", "DISK_GB=1"
    )
    cli.refusal(4, "provider", "set", uuid, "--reserved", "VCPU=8")
    cli.refusal(4, "provider", "set", uuid, "--add-trait", "CUSTOM_NOBODY_KNOWS")
    for text in ("VCPU", "=4", "VCPU=four"):
        assert "is not CLASS=NUMBER" in cli.refusal(2, "provider", "set", uuid, "--ratio", text)
    assert cli.lines("provider", "set", uuid, "--ratio", "VCPU=1") == [
        f"kept-{uuid}: nothing changes"
    ]


def test_an_agents_total_is_the_agents(cli: Cli) -> None:
    """The refusal names the command that sets it; other figures may be changed."""
    agent = str(uuid4())
    cli.lines("agent", "create", agent)
    part = {
        "provider": agent,
        "name": f"host-{agent}",
        "classes": {"CUSTOM_PAGES": {"eligible": 8}},
    }
    facts = {"hostname": f"host-{agent}"}
    body = {"boot_id": "b", "facts": facts, "parts": [part]}
    cli.transport.request("POST", f"/v1/agents/{agent}/register", body)
    said = cli.refusal(4, "provider", "set", agent, "--total", "CUSTOM_PAGES=9")
    assert f"moorage agent set-desired {agent} CUSTOM_PAGES" in said


def test_a_consumer_is_released_and_gets_its_space_back(cli: Cli) -> None:
    """Only by its whole UUID, with --yes or a yes; it can be undone while nobody is there."""
    uuid, guest = ids(2)
    host(cli, uuid, f"dead-{uuid}")
    use(cli, uuid, guest)
    assert "write the whole id" in cli.refusal(2, "consumer", "release", guest[:13], "--yes")
    assert "add --yes" in cli.refusal(2, "consumer", "release", guest)
    for answer, code in ((b"n\n", 1), (b"y\n", 0)):
        with at_terminal(cli.folder, "consumer", "release", guest) as (process, terminal):
            assert f"dead-{uuid}: VCPU=1".encode() in read_until(terminal, b"[y/N]")
            os.write(terminal, answer)
            assert exit_code_of(process, terminal) == code
    cli.refusal(7, "consumer", "show", guest)
    assert cli.answer("provider", "show", uuid)["consumers"] == []
    (done, *_) = cli.answer("reshape", "list", "--limit", "1")
    cli.lines("reshape", "undo", done["id"], "--yes")
    assert cli.answer("consumer", "show", guest)["allocations"][0]["resources"] == {"VCPU": 1}
    released = cli.answer("consumer", "release", guest, "--yes", "--reason", "burnt")
    assert released["consumer"]["uuid"] == guest
    assert cli.answer("reshape", "show", released["reshape"])["reason"] == "burnt"
    cli.refusal(7, "consumer", "release", guest, "--yes")


def test_a_consumer_of_a_lease_is_the_leases(cli: Cli) -> None:
    """The refusal names the lease, and how it ends; then nothing is left to release."""
    uuid, guest = ids(2)
    host(cli, uuid, f"leased-{uuid}")
    cli.lines("pool", "create", f"pool-{uuid}", "--limit", "1")
    held = AllocationsWanted(
        consumer=guest, allocations={uuid: {"VCPU": 1}}, project_id="p", user_id="u"
    )
    lease = cli.ask(f"pool-{uuid}", allocations=held)
    said = cli.refusal(4, "consumer", "release", guest, "--yes")
    assert f"moorage lease revoke {lease}" in said
    cli.lines("lease", "revoke", lease)
    cli.refusal(7, "consumer", "release", guest, "--yes")


def test_a_tree_shows_each_class_of_each_provider(cli: Cli) -> None:
    """Of the whole tree, whichever of its providers is named; as documents with children."""
    root, child, guest = ids(3)
    host(cli, root, f"root-{root}")
    placement(
        cli,
        "POST",
        "/resource_providers",
        {"uuid": child, "name": f"part-{root}", "parent_provider_uuid": root},
    )
    use(cli, root, guest)
    for named in (f"root-{root}", f"part-{root}", child[:13]):
        header, *rows = [line.split("\t") for line in cli.lines("provider", "tree", named)]
        assert header == [
            *("provider", "class", "total", "reserved", "used", "free", "state", "traits"),
            *("uuid", "parent", "capacity"),
        ]
        assert [row[:6] for row in rows] == [
            [f"root-{root}", "VCPU", "8", "0", "1", "7"],
            [f"part-{root}", "-", "-", "-", "-", "-"],
        ]
        assert [row[-3:] for row in rows] == [[root, "-", "8"], [child, root, "-"]]
    (tree,) = cli.answer("provider", "tree", child)
    assert tree["uuid"] == root
    assert [one["uuid"] for one in tree["children"]] == [child]
    assert root in {one["uuid"] for one in cli.answer("provider", "tree")}
    with at_terminal(cli.folder, "provider", "tree", root) as (_, terminal):
        assert f"\r\n  part-{root}".encode() in read_until(terminal, f"part-{root}".encode())


def test_who_uses_how_much(cli: Cli) -> None:
    """By project, user, type and class; with a class the largest amount comes first."""
    (uuid,) = ids(1)
    host(cli, uuid, f"used-{uuid}")
    for amount, project in ((1, f"a-{uuid}"), (3, f"b-{uuid}")):
        body = {
            "allocations": {uuid: {"resources": {"VCPU": amount}}},
            "project_id": project,
            "user_id": "bob",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        placement(cli, "PUT", f"/allocations/{uuid4()}", body)
    ours = (f"a-{uuid}", f"b-{uuid}")
    header, *rows = cli.lines("usage")
    assert header == "project\tconsumers\tholds"
    assert [row for row in rows if row.startswith(ours)] == [
        f"a-{uuid}\t1\tVCPU=1",
        f"b-{uuid}\t1\tVCPU=3",
    ]
    header, *rows = cli.lines("usage", "--by", "user", "--class", "VCPU", "--user", "bob")
    assert header == "project\tuser\tconsumers\tused"
    assert rows == [f"b-{uuid}\tbob\t1\t3", f"a-{uuid}\tbob\t1\t1"]
    assert cli.lines("usage", "--by", "type", "--project", ours[1]) == [
        "type\tconsumers\tholds",
        "INSTANCE\t1\tVCPU=3",
    ]
    (line,) = cli.answer("usage", "--by", "class", "--project", ours[0])
    assert (line["resource_class"], line["resources"]) == ("VCPU", {"VCPU": 1})
    assert moorage("usage", "--by", "host", directory=cli.folder).returncode == 2
