"""Agents and their groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Operation, Types

if TYPE_CHECKING:
    from moorage.wire import fleet, pages
else:
    fleet, pages = map(Types, ("fleet", "pages"))

LIST_AGENTS = Operation(
    "GET /v1/agents",
    role="reader",
    parameters=fleet.AgentsAsked,
    answer=fleet.AgentPage,
    summary="List agents by UUID, with what is desired, there, offered and used.",
)

GET_AGENT = Operation(
    "GET /v1/agents/{id}",
    role="reader",
    scopes=("agent",),
    answer=fleet.Agent,
    summary="Show an agent, with what is desired, there, offered and used.",
)

PUT_AGENT = Operation(
    "PUT /v1/agents/{id}",
    role="operator",
    body=fleet.AgentWanted,
    answer=fleet.Agent,
    summary="Create an agent, or change its group, labels, policy or given root.",
)

GIVE_ROOT_AGENT = Operation(
    "PUT /v1/agents/{id}/root",
    role="operator",
    body=fleet.AgentRootRequest,
    answer=fleet.Agent,
    summary="Let an agent have an existing provider as the root of its machine.",
)

SET_AGENT_DESIRED = Operation(
    "POST /v1/agents/{id}/desired",
    role="operator",
    body=fleet.DesiredRequest,
    answer=fleet.Agent,
    summary="Set how much a machine should have of a class.",
)

DRAIN_AGENT = Operation(
    "POST /v1/agents/{id}/drain",
    role="operator",
    body=fleet.PolicyRequest,
    answer=fleet.Agent,
    summary="Place nothing new on a machine; what runs on it stays.",
)

RESUME_AGENT = Operation(
    "POST /v1/agents/{id}/resume",
    role="operator",
    body=fleet.PolicyRequest,
    answer=fleet.Agent,
    summary="Use a drained machine again.",
)

EXPUNGE_AGENT = Operation(
    "POST /v1/agents/{id}/expunge",
    role="operator",
    body=fleet.PolicyRequest,
    answer=fleet.Agent,
    summary="Never use a machine again; this is final.",
)

DECOMMISSION_AGENT = Operation(
    "POST /v1/agents/{id}/decommission",
    role="operator",
    body=fleet.PolicyRequest,
    answer=fleet.Agent,
    summary="End the agent of an expunged machine for ever.",
)

ENROLL_AGENT = Operation(
    "POST /v1/agents/{id}/enroll",
    role="operator",
    scopes=("enroller",),
    body=fleet.EnrollRequest,
    answer=fleet.Enrolled,
    status=201,
    summary="Create an agent that an operator must still accept, and return its token.",
)

REGISTER_AGENT = Operation(
    "POST /v1/agents/{id}/register",
    role="operator",
    scopes=("agent",),
    body=fleet.RegisterRequest,
    answer=fleet.AgentOrders,
    summary="Register a machine and its parts, after a boot or when they have changed.",
)

PUT_AGENT_REPORT = Operation(
    "PUT /v1/agents/{id}/report",
    role="operator",
    scopes=("agent",),
    body=fleet.ReportRequest,
    answer=fleet.AgentOrders,
    summary="Report everything that a machine has now.",
)

SEND_SIGN_OF_LIFE = Operation(
    "POST /v1/agents/{id}/alive",
    role="operator",
    scopes=("agent",),
    body=fleet.AliveRequest,
    answer=fleet.AliveAnswer,
    routine=True,
    summary="Send a sign of life; it writes nothing.",
)

GET_START = Operation(
    "GET /v1/agents/{id}/starts/{consumer}",
    role="reader",
    scopes=("agent",),
    parameters=fleet.StartAsked,
    answer=fleet.StartAnswer,
    summary="Ask whether a consumer may start on its machine now, or wait until it may.",
)

CONFIRM_GROUP = Operation(
    "POST /v1/groups/{name+}:confirm",
    role="operator",
    answer=fleet.AgentGroup,
    summary="Declare the silent agents of a group whose network is suspect lost.",
)

WAIT_GROUP = Operation(
    "POST /v1/groups/{name+}:wait",
    role="operator",
    body=fleet.GroupWaitRequest,
    answer=fleet.AgentGroup,
    summary="Declare no agent of a group lost for some time, whatever happens.",
)

LIST_GROUPS = Operation(
    "GET /v1/groups",
    role="reader",
    parameters=pages.PageAsked,
    answer=fleet.GroupPage,
    summary="List groups of agents by name.",
)

GET_GROUP = Operation(
    "GET /v1/groups/{name+}",
    role="reader",
    answer=fleet.AgentGroup,
    summary="Show a group of agents.",
)

PUT_GROUP = Operation(
    "PUT /v1/groups/{name+}",
    role="operator",
    body=fleet.GroupWanted,
    answer=fleet.AgentGroup,
    summary="Create a group of agents, or replace its defaults; its members follow.",
)

DELETE_GROUP: Operation[None] = Operation(
    "DELETE /v1/groups/{name+}",
    role="operator",
    summary="Delete a group that has no active agents.",
)
