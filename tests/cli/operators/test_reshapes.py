"""`moorage reshape`: plans are shown as two trees, carried out when confirmed, and undone."""

import json
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.command import moorage
from tests.cli.operators.test_ledger import placement
from tests.cli.pooled import Cli, at_terminal, exit_code_of, lines_at_terminal, read_until

CONFLICT = 4


class Case:
    """A host with 8 VGPU, two guests, and the plan that splits it over two cards."""

    def __init__(self, cli: Cli) -> None:
        self.cli = cli
        self.mark = uuid4().hex[:6]
        self.host, self.left, self.right = (str(uuid4()) for _ in range(3))
        self.guests = [str(uuid4()) for _ in range(2)]
        self.name = f"node-{self.mark}"
        placement(cli, "POST", "/resource_providers", {"uuid": self.host, "name": self.name})
        stock = {"VGPU": {"total": 8}, "MEMORY_MB": {"total": 4096, "reserved": 512}}
        body = {"resource_provider_generation": 0, "inventories": stock}
        placement(cli, "PUT", f"/resource_providers/{self.host}/inventories", body)
        for guest, units in zip(self.guests, (3, 2), strict=True):
            self.use(guest, units)
        self.plan: dict[str, Any] = {
            "create": [
                {"uuid": self.left, "name": f"{self.name}_gpu0", "parent": self.host},
                {"uuid": self.right, "name": f"{self.name}_gpu1", "parent": self.host},
            ],
            "moves": [
                {
                    "from": {"provider": self.host, "class": "VGPU"},
                    "to": {"provider": card, "class": "VGPU"},
                    "amount": 4,
                    "assign": {guest: {card: units}},
                }
                for card, guest, units in zip(
                    (self.left, self.right), self.guests, (3, 2), strict=True
                )
            ],
            "traits": {self.left: ["HW_GPU_API_VULKAN"]},
        }

    def use(self, guest: str, units: int, generation: int | None = None) -> None:
        """Let a guest hold units of the host."""
        body = {
            "allocations": {self.host: {"resources": {"VGPU": units}}},
            "project_id": "shop",
            "user_id": "alice",
            "consumer_generation": generation,
            "consumer_type": "INSTANCE",
        }
        placement(self.cli, "PUT", f"/allocations/{guest}", body)

    def file(self, plan: Any = None) -> str:
        """Write a plan; return the path."""
        path = self.cli.folder / f"plan-{self.mark}.json"
        path.write_text(json.dumps(self.plan if plan is None else plan))
        return str(path)

    @property
    def trees(self) -> list[str]:
        """The lines of both trees in a pipe."""
        memory = "- MEMORY_MB 0/4096 (512 reserved)"
        return [
            "before\tafter",
            f"{self.name}\t{self.name}",
            f"{memory}\t{memory}",
            "- VGPU 5/8\t-",
            f"-\t  {self.name}_gpu0",
            "-\t  - VGPU 3/4",
            f"-\t  {self.name}_gpu1",
            "-\t  - VGPU 2/4",
        ]


@pytest.fixture
def case(cli: Cli) -> Case:
    """Return a new host."""
    return Case(cli)


def test_a_plan_is_shown_and_carried_out(case: Case) -> None:
    """A preview changes nothing; its digest is enough for the commit; undoing leads back."""
    cli, path = case.cli, case.file()
    shown = cli.lines("reshape", "plan", path)
    assert shown[:8] == case.trees
    assert shown[8] == "consumer\tprovider\tclass\tchange"
    moved = {tuple(line.split("\t")) for line in shown[9:13]}
    assert moved == {
        (case.guests[0], case.name, "VGPU", "-3"),
        (case.guests[0], f"{case.name}_gpu0", "VGPU", "+3"),
        (case.guests[1], case.name, "VGPU", "-2"),
        (case.guests[1], f"{case.name}_gpu1", "VGPU", "+2"),
    }
    planned = cli.answer("reshape", "plan", path)
    assert shown[13:] == [f"{len(planned['effects'])} effects, digest {planned['digest']}"]
    assert planned["violations"] == []
    assert {one["class"] for one in planned["summary"]["places"]} == {"VGPU", "MEMORY_MB"}
    assert cli.refusal(7, "provider", "show", case.left)
    assert "add --yes" in cli.refusal(2, "reshape", "commit", path)
    commit = ("reshape", "commit", path, "--digest", planned["digest"], "--yes")
    done = cli.answer(*commit, "--reason", "cards are shown")
    assert done["digest"] == planned["digest"]
    assert (done["reason"], done["providers"], done["consumers"]) == ("cards are shown", 3, 2)
    assert cli.answer("provider", "show", case.left)["provider"]["traits"] == ["HW_GPU_API_VULKAN"]
    (listed,) = [one for one in cli.answer("reshape", "list") if one["id"] == done["id"]]
    assert listed["undone_by"] is None
    printed = cli.lines("reshape", "show", done["id"][:13])
    assert f"digest\t{planned['digest']}" in printed
    assert printed[-13:-5] == case.trees
    again = moorage("reshape", "plan", path, directory=cli.folder)
    assert again.returncode == CONFLICT
    assert "the plan cannot be carried out" in again.stderr
    back = cli.lines("reshape", "undo", done["id"], "--yes")
    swapped = {"\t".join(reversed(line.split("\t"))) for line in case.trees[1:]}
    assert {*back[1:8]} == swapped
    assert back[-1] == f"undo it with: moorage reshape undo {_id(back)}"
    assert cli.refusal(7, "provider", "show", case.left)
    assert "was undone by" in cli.refusal(CONFLICT, "reshape", "undo", done["id"], "--yes")
    assert cli.answer("reshape", "show", done["id"])["undone_by"] == _id(back)
    cli.answer("reshape", "undo", _id(back), "--yes")
    assert cli.answer("provider", "show", case.left)["provider"]["parent"] == case.host


def test_an_undo_names_whom_it_creates_again(case: Case) -> None:
    """Only the operator knows whether they still have an owner, and leaves out who has none."""
    cli, (first, second) = case.cli, case.guests
    vacate = {guest: [case.host] for guest in case.guests}
    path = case.file({"vacate": vacate, "release": [*case.guests]})
    done = cli.answer("reshape", "commit", path, "--yes")["id"]
    out = ("reshape", "undo", done, "--leave-out", second, "--yes")
    wrong = moorage(*out, "--leave-out", str(uuid4()), directory=cli.folder)
    assert wrong.returncode == CONFLICT
    assert "cannot be left out" in wrong.stderr
    lines = cli.lines(*out)
    (note,) = [n for n, line in enumerate(lines) if line.startswith("note: 1 consumer would be")]
    assert lines[note + 1] == f"  {first}"
    assert cli.answer("consumer", "show", first)["allocations"]
    assert cli.refusal(7, "consumer", "show", second)


def _id(lines: list[str]) -> str:
    """Return the id of the reshape that these lines say is done."""
    return lines[-2].split()[1]


def test_all_violations_are_printed(case: Case) -> None:
    """Each is a line with its code; the exit code says that the plan cannot be carried out."""
    for move in case.plan["moves"]:
        move["assign"] = {}
    case.plan["traits"][case.right] = ["CUSTOM_UNHEARD_OF"]
    for command in (("plan",), ("commit", "--yes")):
        done = moorage("reshape", *command, case.file(), directory=case.cli.folder)
        assert done.returncode == CONFLICT
        lines = done.stdout.splitlines()
        at = lines.index("code\tprovider\tclass\tconsumer\tamount\tmessage")
        found = [line.split("\t")[:5] for line in lines[at + 1 :]]
        assert sorted(found) == sorted(
            [
                ["trait_unknown", f"{case.name}_gpu1", "-", "-", "-"],
                ["unassigned", case.name, "VGPU", case.guests[0], "3"],
                ["unassigned", case.name, "VGPU", case.guests[1], "2"],
            ]
        )
        assert "the plan cannot be carried out: 3 violations; the first: " in done.stderr


def test_another_digest_is_refused(case: Case) -> None:
    """With the present one in the message; --strict goes on if nothing has happened."""
    path = case.file()
    options = ("--digest", "0" * 64, "--yes", "--json")
    done = moorage("reshape", "commit", path, *options, directory=case.cli.folder)
    error = json.loads(done.stderr)["error"]
    assert (error["code"], error["exit_code"]) == ("reshape_changed", CONFLICT)
    digest = case.cli.answer("reshape", "plan", path)["digest"]
    assert digest in error["message"]
    done = case.cli.answer("reshape", "commit", path, "--strict", "--yes")
    assert done["digest"] == digest


def test_yaml_and_standard_input(case: Case) -> None:
    """A file whose name ends so is YAML; unknown members are named."""
    path = Path(case.file()).with_suffix(".yaml")
    text = f"rename: {{{case.host}: renamed-{case.mark}}}\ncross_tree: false\n"
    path.write_text(text)
    assert case.cli.lines("reshape", "plan", str(path))[1] == f"{case.name}\trenamed-{case.mark}"
    path.write_text("renames: {}\n")
    assert "renames: unknown" in case.cli.refusal(2, "reshape", "plan", str(path))
    assert "no-file" in case.cli.refusal(2, "reshape", "plan", "no-file.json")
    deep = path.with_suffix(".json")
    for file, text in ((path, "a: ["), (path, "[" * 5_000), (deep, "[" * 100_000)):
        file.write_text(text)
        assert "cannot read the plan" in case.cli.refusal(2, "reshape", "plan", str(file))


def test_a_terminal_shows_both_trees_and_asks(case: Case) -> None:
    """Side by side where there is room, one below the other where there is none."""
    path = case.file()
    wide = lines_at_terminal(case.cli.folder, "reshape", "plan", path, columns=160)
    assert wide[0].split() == ["before", "after"]
    (card,) = [line for line in wide if line.endswith("- VGPU 2/4")]
    assert card.startswith(" " * 20), "it is not on the right"
    narrow = lines_at_terminal(case.cli.folder, "reshape", "plan", path, columns=60)
    assert narrow.index("before") < narrow.index("after")
    assert sum(case.name in line for line in narrow[: narrow.index("after")]) == 1
    with at_terminal(case.cli.folder, "reshape", "commit", path) as (command, terminal):
        assert b"\x1b[32m" in read_until(terminal, b"Carry out this plan?")
        os.write(terminal, b"n\n")
        assert exit_code_of(command, terminal) == 1
    assert case.cli.refusal(7, "provider", "show", case.left)
    with at_terminal(case.cli.folder, "reshape", "commit", path) as (command, terminal):
        read_until(terminal, b"Carry out this plan?")
        os.write(terminal, b"y\n")
        assert b"is done: 3 providers and 2 consumers changed" in read_until(terminal, b"undo it")
        assert exit_code_of(command, terminal) == 0


def test_no_color(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR there are no colours."""
    monkeypatch.setenv("NO_COLOR", "1")
    with at_terminal(case.cli.folder, "reshape", "plan", case.file()) as (_, terminal):
        assert b"\x1b[3" not in read_until(terminal, b"digest")


def test_what_has_changed_since_is_shown(case: Case) -> None:
    """If a guest changes while somebody reads the question, the differences are printed."""
    case.plan["accept_drift"] = case.guests
    with at_terminal(case.cli.folder, "reshape", "commit", case.file()) as (command, terminal):
        read_until(terminal, b"Carry out this plan?")
        case.use(case.guests[0], 1, generation=1)
        os.write(terminal, b"y\n")
        seen = read_until(terminal, b"something else")
        assert b"- allocations_set" in seen
        assert b"+ allocations_set" in seen
        assert exit_code_of(command, terminal) == CONFLICT
    assert case.cli.refusal(7, "provider", "show", case.left)
