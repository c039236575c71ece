"""Plans of agents over HTTP: answers, violations, tokens, limits."""

import json
from typing import Any
from uuid import UUID, uuid4, uuid5

import jsonschema
import pytest

from moorage.core.limits import MACHINE_PLAN_ENTRIES_MAX, VIOLATIONS_ANSWERED_MAX
from tests.faces.v1.fleet.machine import PLACEMENT, Machine
from tests.faces.v1.native import Native, Response


class Node:
    """A compute node with four VGPU, of which a guest has three, and the agent of it."""

    def __init__(self, native: Native) -> None:
        self.native = native
        self.root, self.guest = str(uuid4()), str(uuid4())
        self.name = f"node {self.root}"
        self.machine = Machine(native, self.root)
        body: Any = {"name": self.name, "uuid": self.root}
        native.ask("POST", "/resource_providers", body, **PLACEMENT)
        stock = {"resource_provider_generation": 0, "inventories": {"VGPU": {"total": 4}}}
        native.ask("PUT", f"/resource_providers/{self.root}/inventories", stock, **PLACEMENT)
        claim = {
            "allocations": {self.root: {"resources": {"VGPU": 3}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        assert native.ask("PUT", f"/allocations/{self.guest}", claim, **PLACEMENT).status == 204
        self.machine.put()
        assert self.machine.register(root=self.root).status == 200
        name = f"{self.name}_gpu0"
        self.child = str(uuid5(UUID(self.root), name))
        self.plan: dict[str, Any] = {
            "create": [{"uuid": self.child, "name": name, "parent": self.root}],
            "moves": [
                {
                    "from": {"provider": self.root, "class": "VGPU"},
                    "to": {"provider": self.child, "class": "VGPU"},
                    "assign": {self.guest: {self.child: 3}},
                }
            ],
        }

    def report(self, **members: Any) -> Response:
        """Send the next report with the plan, by the agent's own token."""
        return self.machine.report(**{"plan": self.plan, **members})

    def where(self) -> dict[str, Any]:
        """Return the allocations of the guest."""
        found = self.native.ask("GET", f"/allocations/{self.guest}", **PLACEMENT)
        return {uuid: one["resources"] for uuid, one in found.body["allocations"].items()}


@pytest.fixture
def node(native: Native) -> Node:
    """Return a new node."""
    return Node(native)


def conforms(native: Native, name: str, answer: Response) -> Any:
    """Return a body, after comparing it with its description."""
    document = native.ask("GET", "/v1/openapi.json").body
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(answer.body)
    return answer.body


def test_the_answer_says_what_became_of_it(node: Node) -> None:
    """So does the agent; an operator undoes it as any reshape; the audit row names the agent."""
    native = node.native
    began = native.ask("GET", "/v1/watch?wait=0").body["next"]
    assert node.machine.report().status == 200
    answer = node.report()
    assert answer.status == 200, answer
    plan = conforms(native, "AgentOrders", answer)["plan"]
    assert (plan["outcome"], plan["boot_id"]) == ("done", "boot-1")
    assert node.where() == {node.child: {"VGPU": 3}}
    shown = conforms(native, "Agent", native.ask("GET", f"/v1/agents/{node.root}"))
    assert shown["plan"] == plan
    feed = native.ask("GET", f"/v1/watch?after={began}&wait=0&kinds=agent&limit=500").body
    assert feed["changes"][-1]["value"]["plan"] == plan
    assert feed["changes"][0]["value"]["plan"] is None, "the control: before, there was none"
    path = f"/v1/reshapes/{plan['reshape']}"
    record = native.ask("GET", path).body
    assert (record["who"], record["role"]) == (node.machine.host, "agent")
    (row,) = native.ask("GET", f"/v1/audit?target={plan['reshape']}").body["entries"]
    assert (row["action"], row["role"], row["who"]) == (
        "reshape.commit",
        "agent",
        node.machine.host,
    )
    assert native.ask("POST", f"{path}:undo", {}).status == 200
    assert node.where() == {node.root: {"VGPU": 3}}
    assert node.report().body["plan"]["outcome"] == "undone"
    assert node.where() == {node.root: {"VGPU": 3}}
    assert node.machine.report().body["plan"] is None


def test_a_refusal_has_the_violations(node: Node) -> None:
    """All of them, as `Problem` describes; nothing of the report counts."""
    del node.plan["moves"][0]["assign"]
    node.plan["traits"] = {node.child: ["CUSTOM_NOT_THERE"]}
    answer = node.report()
    problem = conforms(node.native, "Problem", answer)
    assert (answer.status, problem["code"]) == (409, "reshape_refused")
    assert {one["code"] for one in problem["violations"]} == {"unassigned", "trait_unknown"}
    assert "plan" not in problem
    shown = node.native.ask("GET", f"/v1/agents/{node.root}").body
    assert (shown["report_generation"], shown["plan"]) == (0, None)
    assert node.machine.report().status == 200


def test_very_many_violations_are_cut(node: Node) -> None:
    """An agent reads answers of at most 1 MiB; the detail says how many there are."""
    traits = [f"CUSTOM_T{n}" for n in range(2 * VIOLATIONS_ANSWERED_MAX)]
    node.plan["traits"] = {node.child: traits}
    answer = node.report()
    assert answer.status == 409
    assert len(answer.body["violations"]) == VIOLATIONS_ANSWERED_MAX
    assert len(json.dumps(answer.body)) < 1 << 20
    assert f"{len(traits) - 1} more violations" in answer.body["detail"]


@pytest.mark.parametrize(
    "plan",
    [
        {"traits": {str(uuid4()): [f"T{n}" for n in range(MACHINE_PLAN_ENTRIES_MAX)]}},
        {"rename": {"nobody": "x"}},
        {"renames": {}},
        {"moves": 7},
        [],
    ],
    ids=["too many entries", "no UUID", "no such member", "no list", "no object"],
)
def test_what_is_no_plan_is_refused(node: Node, plan: Any) -> None:
    """With a status that tells the agent not to send it again."""
    before = node.where()
    assert node.report(plan=plan).status in (400, 422)
    assert node.where() == before
    assert node.machine.report().status == 200


def test_a_body_that_is_too_long_is_refused(node: Node) -> None:
    """The limit of bodies is that of every report."""
    assert node.report(plan={"rename": {str(uuid4()): "x" * (1 << 20)}}).status == 413


def test_the_token_of_another_agent(node: Node) -> None:
    """It sends no plan for this machine, and its own may not name this machine."""
    other = Node(node.native)
    answer = node.machine.send(
        "PUT", "report", node.machine.report_body(plan=node.plan), other.machine.token
    )
    assert (answer.status, answer.body["code"]) == (403, "forbidden")
    answer = other.report(plan=node.plan)
    assert answer.status == 409
    assert {one["code"] for one in answer.body["violations"]} == {"not_own"}
    assert node.where() == {node.root: {"VGPU": 3}}
    assert node.report().status == 200
