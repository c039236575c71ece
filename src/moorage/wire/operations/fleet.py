"""Agents and their groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Access, Content, Operation, Types

if TYPE_CHECKING:
    from moorage.wire import fleet, pages
else:
    fleet, pages = map(Types, ("fleet", "pages"))

LIST_AGENTS = Operation(
    Access("GET /v1/agents", "reader"),
    Content(parameters=fleet.AgentsAsked, answer=fleet.AgentPage),
    "List agents by UUID, with desired, actual, offered and used amounts.",
)
GET_AGENT = Operation(
    Access("GET /v1/agents/{id}", "reader", "agent"),
    Content(answer=fleet.Agent),
    "Show an agent, with desired, actual, offered and used amounts.",
)
PUT_AGENT = Operation(
    Access("PUT /v1/agents/{id}", "operator"),
    Content(body=fleet.AgentWanted, answer=fleet.Agent),
    "Create an agent, or change its group, labels, policy or given root.",
)
GIVE_ROOT_AGENT = Operation(
    Access("PUT /v1/agents/{id}/root", "operator"),
    Content(body=fleet.AgentRootRequest, answer=fleet.Agent),
    "Let an agent have an existing provider as the root of its machine.",
)
SET_AGENT_DESIRED = Operation(
    Access("POST /v1/agents/{id}/desired", "operator"),
    Content(body=fleet.DesiredRequest, answer=fleet.Agent),
    "Set how much a machine should have of a class.",
)
DRAIN_AGENT = Operation(
    Access("POST /v1/agents/{id}/drain", "operator"),
    Content(body=fleet.PolicyRequest, answer=fleet.Agent),
    "Place nothing new on a machine; what runs on it stays.",
)
RESUME_AGENT = Operation(
    Access("POST /v1/agents/{id}/resume", "operator"),
    Content(body=fleet.PolicyRequest, answer=fleet.Agent),
    "Use a drained machine again.",
)
EXPUNGE_AGENT = Operation(
    Access("POST /v1/agents/{id}/expunge", "operator"),
    Content(body=fleet.PolicyRequest, answer=fleet.Agent),
    "Never use a machine again; this is final.",
)
DECOMMISSION_AGENT = Operation(
    Access("POST /v1/agents/{id}/decommission", "operator"),
    Content(body=fleet.PolicyRequest, answer=fleet.Agent),
    "End the agent of an expunged machine permanently.",
)
ENROLL_AGENT = Operation(
    Access("POST /v1/agents/{id}/enroll", "operator", "enroller"),
    Content(body=fleet.EnrollRequest, answer=fleet.Enrolled, status=201),
    "Create an agent that an operator must still accept, and return its token.",
)
REGISTER_AGENT = Operation(
    Access("POST /v1/agents/{id}/register", "operator", "agent"),
    Content(body=fleet.RegisterRequest, answer=fleet.AgentOrders),
    "Register a machine and its parts, after a boot or when they have changed.",
)
PUT_AGENT_REPORT = Operation(
    Access("PUT /v1/agents/{id}/report", "operator", "agent"),
    Content(body=fleet.ReportRequest, answer=fleet.AgentOrders),
    "Report everything that a machine has now.",
)
SEND_SIGN_OF_LIFE = Operation(
    Access("POST /v1/agents/{id}/alive", "operator", "agent"),
    Content(body=fleet.AliveRequest, answer=fleet.AliveAnswer),
    "Send a sign of life; it writes nothing.",
    routine=True,
)
GET_START = Operation(
    Access("GET /v1/agents/{id}/starts/{consumer}", "reader", "agent"),
    Content(parameters=fleet.StartAsked, answer=fleet.StartAnswer),
    "Ask whether a consumer may start on its machine now, or wait until it may.",
)
CONFIRM_GROUP = Operation(
    Access("POST /v1/groups/{name+}:confirm", "operator"),
    Content(answer=fleet.AgentGroup),
    "Declare lost the silent agents of a group whose network is suspect.",
)
WAIT_GROUP = Operation(
    Access("POST /v1/groups/{name+}:wait", "operator"),
    Content(body=fleet.GroupWaitRequest, answer=fleet.AgentGroup),
    "Declare no agent of a group lost for some time, whatever happens.",
)
LIST_GROUPS = Operation(
    Access("GET /v1/groups", "reader"),
    Content(parameters=pages.PageAsked, answer=fleet.GroupPage),
    "List groups of agents by name.",
)
GET_GROUP = Operation(
    Access("GET /v1/groups/{name+}", "reader"),
    Content(answer=fleet.AgentGroup),
    "Show a group of agents.",
)
PUT_GROUP = Operation(
    Access("PUT /v1/groups/{name+}", "operator"),
    Content(body=fleet.GroupWanted, answer=fleet.AgentGroup),
    "Create a group of agents, or replace its defaults; its members follow.",
)
DELETE_GROUP: Operation[None] = Operation(
    Access("DELETE /v1/groups/{name+}", "operator"),
    Content(),
    "Delete a group that has no active agents.",
)
