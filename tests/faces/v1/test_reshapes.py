"""Reshape plans over HTTP: every answer is as described, refusals say all, dry runs do nothing."""

import json
from typing import Any
from uuid import uuid4

import jsonschema
import pytest

from moorage.core.limits import RESHAPE_ENTRIES_MAX
from tests.faces.v1.native import Native, Response
from tests.faces.v1.reshaping import Split


@pytest.fixture
def split(native: Native) -> Split:
    """Return a new host."""
    return Split(native)


def conforms(native: Native, name: str, answer: Response, status: int) -> Any:
    """Return a body, after comparing it with its description."""
    assert answer.status == status, answer
    document = native.ask("GET", "/v1/openapi.json").body
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(answer.body)
    members = document["components"]["schemas"][name]["properties"]
    if name != "Problem":
        assert set(answer.body) == set(members), "a member is missing, or is one too many"
    return answer.body


def test_answers_are_as_described(split: Split) -> None:
    """Previews, commits, lists and dry runs have all their members, under their names in JSON."""
    native = split.native
    planned = conforms(native, "ReshapePlanned", split.shown(), 200)
    assert planned["violations"] == []
    kinds = [one["kind"] for one in planned["effects"]]
    assert sorted(kinds) == [
        "allocations_set",
        "inventory_set",
        "inventory_set",
        "provider_created",
    ]
    assert {one["class"] for one in planned["summary"]["places"]} == {"VGPU"}
    assert planned["generations"]["consumers"] == {split.guest: 1}
    done = conforms(native, "Reshape", split.committed(digest=planned["digest"]), 201)
    assert done["effects"] == planned["effects"]
    assert done["generations"]["consumers"] == {split.guest: 2}
    path = f"/v1/reshapes/{done['id']}"
    assert conforms(native, "Reshape", native.ask("GET", path), 200) == done
    page = conforms(native, "ReshapePage", native.ask("GET", "/v1/reshapes?limit=1"), 200)
    assert [one["id"] for one in page["reshapes"]] == [done["id"]]
    dry = native.ask("POST", f"{path}:undo", {"dry_run": True})
    shown = conforms(native, "ReshapeUndone", dry, 200)
    assert (shown["reshape"], shown["plan"]["violations"]) == (None, [])
    undone = conforms(native, "ReshapeUndone", native.ask("POST", f"{path}:undo"), 200)
    assert (undone["reshape"]["undoes"], undone["plan"]) == (done["id"], None)
    assert native.ask("GET", path).body["undone_by"] == undone["reshape"]["id"]
    following = native.ask("GET", "/v1/reshapes?limit=1").body["next"]
    rest = native.ask("GET", f"/v1/reshapes?limit=1&cursor={following}").body
    assert [one["id"] for one in rest["reshapes"]] == [done["id"]]


def test_what_is_left_out_of_an_undo(split: Split) -> None:
    """A note names who would exist again; the request names who is left out, in any spelling."""
    native, guest = split.native, split.guest
    split.plan = {"vacate": {guest: [split.host]}, "release": [guest]}
    path = f"/v1/reshapes/{split.committed().body['id']}:undo"
    dry = native.ask("POST", path, {"dry_run": True}).body["plan"]
    (note,) = dry["notes"]
    assert (note["code"], note["consumers"]) == ("created_again", {guest: None})
    asked = {"leave_out": [guest.upper()], "id": str(uuid4())}
    dry = native.ask("POST", path, {"dry_run": True, **asked})
    assert (dry.body["plan"]["effects"], dry.body["plan"]["notes"]) == ([], [])
    assert native.ask("POST", path, {"leave_out": ["x"]}).status == 400
    answers = [native.ask("POST", path, asked) for _ in range(2)]
    assert [one.status for one in answers] == [200, 200]
    reused = native.ask("POST", path, {"id": asked["id"]})
    assert (reused.status, reused.body["code"]) == (409, "key_reused")
    assert native.ask("GET", f"/v1/consumers/{guest}").status == 404


def test_a_refusal_has_all_violations(split: Split) -> None:
    """And the rest of the plan as far as it is known."""
    split.plan["moves"][0]["assign"] = {}
    split.plan["traits"] = {split.child: ["CUSTOM_NOT_THERE"]}
    shown = conforms(split.native, "ReshapePlanned", split.shown(), 200)
    assert {one["code"] for one in shown["violations"]} == {"unassigned", "trait_unknown"}
    problem = conforms(split.native, "Problem", split.committed(), 409)
    assert problem["code"] == "reshape_refused"
    assert problem["plan"]["violations"] == shown["violations"]
    assert problem["plan"]["revision"] is None
    assert "differences" not in problem


def test_a_refusal_says_what_differs(split: Split) -> None:
    """If the caller sends what it has seen; numbers may be written as other programs do."""
    split.plan["accept_drift"] = [split.guest]
    shown = split.shown().body
    for effect in shown["effects"]:
        if effect["kind"] == "inventory_set" and effect["after"] is not None:
            effect["after"]["allocation_ratio"] = 1
    split.use(2, 1)
    seen = {"digest": shown["digest"], "effects": shown["effects"]}
    problem = conforms(split.native, "Problem", split.committed(**seen), 409)
    assert problem["code"] == "reshape_changed"
    held = {"VGPU": 3}, {"VGPU": 2}
    for side, amounts in zip(("gone", "new"), held, strict=True):
        (one,) = problem["differences"][side]
        assert one["kind"] == "allocations_set"
        assert one["before"] == {split.host: amounts}
    assert "differences" not in split.committed(digest=shown["digest"]).body
    again = split.committed(digest=problem["plan"]["digest"])
    assert again.status == 201


def test_a_uuid_in_two_spellings_is_refused(split: Split) -> None:
    """Otherwise one of the two instructions would be dropped in silence."""
    other = split.guest.upper()
    split.plan["moves"][0]["assign"][other] = {split.host: 3}
    problem = conforms(split.native, "Problem", split.shown(), 400)
    assert problem["code"] == "invalid"
    del split.plan["moves"][0]["assign"][split.guest]
    assert split.shown().status == 200


def test_names_and_entries_are_bounded(split: Split) -> None:
    """A class is named in each violation, and each entry may be one."""
    split.plan["traits"] = {split.child: ["A" * 256]}
    assert conforms(split.native, "Problem", split.shown(), 400)["code"] == "invalid"
    split.plan["traits"] = {split.child: [f"A{n}" for n in range(RESHAPE_ENTRIES_MAX)]}
    problem = conforms(split.native, "Problem", split.shown(), 400)
    assert problem["code"] == "limit_exceeded"


@pytest.mark.parametrize("depth", [100, 900, 5_000])
def test_deep_effects_are_no_error_of_the_server(split: Split, depth: int) -> None:
    """What a caller says that it has seen may be anything."""
    split.plan["accept_drift"] = [split.guest]
    digest = split.shown().body["digest"]
    split.use(2, 1)
    seen = [{"kind": "allocations_set", "before": "DEEP"}]
    body = json.dumps({"plan": split.plan, "digest": digest, "effects": seen})
    deep = '{"a":' * depth + "1" + "}" * depth
    answer = split.native.ask("POST", "/v1/reshapes", body.replace('"DEEP"', deep).encode())
    assert answer.status in (400, 409), answer
