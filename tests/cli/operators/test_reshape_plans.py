"""`moorage reshape split` and its like: what they write can be carried out by a real server."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.operators.test_ledger import placement
from tests.cli.operators.test_reshapes import Case
from tests.cli.pooled import Cli


@pytest.fixture
def case(cli: Cli) -> Case:
    """Return a host with 8 VGPU and 4 GB of memory, of which guests hold 3 and 2 VGPU."""
    return Case(cli)


def evidence(case: Case, document: Any, ending: str = "json") -> str:
    """Write a file of evidence."""
    path = case.cli.folder / f"evidence-{case.mark}.{ending}"
    path.write_text(json.dumps(document))
    return str(path)


def made(case: Case, *words: str) -> str:
    """Write a plan; return its file."""
    path = str(case.cli.folder / f"made-{case.mark}.json")
    assert case.cli.lines("reshape", *words, "-o", path)[-1].endswith(f"reshape plan {path}")
    return path


def commit(case: Case, *words: str) -> str:
    """Carry out what a command writes; return the id of the reshape."""
    done: dict[str, str] = case.cli.answer("reshape", "commit", made(case, *words), "--yes")
    return done["id"]


def allocations(case: Case, guest: str) -> dict[str, Any]:
    """Return what a guest holds, by the name of the provider."""
    held = case.cli.answer("consumer", "show", guest)["allocations"]
    return {one["name"]: one["resources"] for one in held}


def test_a_split_in_two_steps(case: Case) -> None:
    """Without evidence a guest stays; the same file with more of it moves the rest."""
    left, right = f"{case.name}_gpu0", f"{case.name}_gpu1"
    seen = {"children": {left: {"total": 4}, right: {"total": 4}}}
    first, second = case.guests
    part = evidence(case, {**seen, "consumers": {first: {left: 3}}}, "yaml")
    split = ("split", "--provider", case.name, "--class", "VGPU", "--by")
    before = commit(case, *split, part)
    assert allocations(case, first) == {left: {"VGPU": 3}}
    assert allocations(case, second) == {case.name: {"VGPU": 2}}
    whole = {**seen, "consumers": {first: {left: 3}, second: {left: 1, right: 1}}}
    after = commit(case, *split, evidence(case, whole))
    assert allocations(case, second) == {left: {"VGPU": 1}, right: {"VGPU": 1}}
    for reshape in (after, before):
        case.cli.answer("reshape", "undo", reshape, "--yes")
    assert allocations(case, first) == {case.name: {"VGPU": 3}}


def test_numa_and_pci(case: Case) -> None:
    """Other files, the same split."""
    cells = {
        f"{case.name}_numa0": {"inventories": {"MEMORY_MB": {"total": 2048, "reserved": 512}}},
        f"{case.name}_numa1": {"inventories": {"MEMORY_MB": 2048}},
    }
    commit(case, "numa", "--provider", case.name, "--by", evidence(case, {"cells": cells}))
    shown = case.cli.answer("provider", "show", f"{case.name}_numa0")["provider"]
    assert (shown["inventories"]["MEMORY_MB"]["reserved"], shown["parent"]) == (512, case.host)
    devices = {
        f"0000:8{number}:00.0": {"class": "VGPU", "total": 4, "consumers": {guest: units}}
        for number, (guest, units) in enumerate(zip(case.guests, (3, 2), strict=True))
    }
    commit(case, "pci", "--provider", case.name, "--by", evidence(case, {"devices": devices}))
    assert allocations(case, case.guests[1]) == {f"{case.name}_0000:81:00.0": {"VGPU": 2}}


def test_a_class_is_renamed(case: Case) -> None:
    """With everybody on it, also with a guest that has come in between."""
    name = f"CUSTOM_VGPU_{case.mark.upper()}"
    placement(case.cli, "PUT", f"/resource_classes/{name}", None)
    path = made(case, "rename-class", "VGPU", name, "--provider", case.name)
    newcomer = str(uuid4())
    case.use(newcomer, 1)
    case.cli.answer("reshape", "commit", path, "--yes")
    assert allocations(case, case.guests[0]) == {case.name: {name: 3}}
    assert allocations(case, newcomer) == {case.name: {name: 1}}
    message = case.cli.refusal(1, "reshape", "rename-class", "VGPU", name, "--provider", case.name)
    assert "no provider has an inventory of VGPU" in message


def test_a_host_moves(case: Case) -> None:
    """To another name, to another UUID, and to a provider that exists."""
    old, uuid, other = case.name, str(uuid4()), str(uuid4())
    first = commit(case, "move-host", old, f"{old}-renamed")
    assert allocations(case, case.guests[0]) == {f"{old}-renamed": {"VGPU": 3}}
    case.cli.answer("reshape", "undo", first, "--yes")
    commit(case, "move-host", old, uuid)
    shown = case.cli.answer("provider", "show", uuid)["provider"]
    assert (shown["name"], shown["inventories"]["MEMORY_MB"]["reserved"]) == (old, 512)
    placement(case.cli, "POST", "/resource_providers", {"uuid": other, "name": f"{old}-new"})
    body = {"resource_provider_generation": 0, "inventories": {"VGPU": {"total": 16}}}
    placement(case.cli, "PUT", f"/resource_providers/{other}/inventories", body)
    commit(case, "move-host", old, f"{old}-new", "--name", old)
    shown = case.cli.answer("provider", "show", old)["provider"]
    assert (shown["uuid"], shown["inventories"]["VGPU"]["total"]) == (other, 16)
    assert shown["inventories"]["MEMORY_MB"]["total"] == 4096
    assert allocations(case, case.guests[0]) == {old: {"VGPU": 3}}


def test_the_successor_of_a_drained_host_is_drained(case: Case) -> None:
    """For the same reason, whether it is created or exists; undo opens again what it closed."""
    old, uuid, other = case.name, str(uuid4()), str(uuid4())
    case.cli.answer("provider", "drain", old, "--reason", "broken fan")
    first = commit(case, "move-host", old, uuid)
    shown = case.cli.answer("provider", "show", old)["provider"]
    assert (shown["uuid"], shown["withheld"]) == (uuid, "drained: broken fan")
    case.cli.answer("reshape", "undo", first, "--yes")
    shown = case.cli.answer("provider", "show", old)["provider"]
    assert (shown["uuid"], shown["withheld"]) == (case.host, "drained: broken fan")
    placement(case.cli, "POST", "/resource_providers", {"uuid": other, "name": f"{old}-new"})
    second = commit(case, "move-host", old, f"{old}-new")
    new = ("provider", "show", f"{old}-new")
    assert case.cli.answer(*new)["provider"]["withheld"] == "drained: broken fan"
    case.cli.answer("reshape", "undo", second, "--yes")
    assert case.cli.answer(*new)["provider"]["withheld"] is None


def test_what_is_refused(case: Case) -> None:
    """Files that cannot be read, a class twice in JSON, and a plan that cannot be made."""
    split = ("reshape", "split", "--provider", case.name, "--class", "VGPU", "--by")
    path = evidence(case, {"children": {"a": {"total": 9}}})
    assert "have 9 of VGPU in all" in case.cli.refusal(1, *split, path)
    assert "cannot read the evidence in" in case.cli.refusal(2, *split, "no-file.json")
    Path(path).write_text('{"children": {}, "children": {}}')
    assert "'children' is defined twice" in case.cli.refusal(2, *split, path)
    words = ("reshape", "move-host", case.name, "a", "--name", "b")
    assert "--name is for" in case.cli.refusal(2, *words)
