"""The typed native API of the fleet: agents and their groups, for operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from moorage.client.calling import Room
from moorage.wire.fleet import (
    Agent,
    AgentGroup,
    AgentRootRequest,
    AgentWanted,
    DesiredRequest,
    Enrolled,
    EnrollRequest,
    GroupWaitRequest,
    GroupWanted,
    PolicyRequest,
)
from moorage.wire.operations import fleet

POLICIES = {
    "drain": fleet.DRAIN_AGENT,
    "resume": fleet.RESUME_AGENT,
    "expunge": fleet.EXPUNGE_AGENT,
    "decommission": fleet.DECOMMISSION_AGENT,
}


class Fleet(Room):
    """The agents and groups of one server.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server.
    """

    def agents(self, **filters: str | bool | None) -> Iterator[Agent]:
        """Yield agents by UUID; the filters are those of `wire.fleet.AgentsAsked`."""
        for page in self._pages(fleet.LIST_AGENTS, query=filters):
            yield from page.agents

    def agent(self, agent_id: str) -> Agent:
        """Return an agent."""
        return self._call(fleet.GET_AGENT, agent_id)

    def agent_put(self, agent_id: str, wanted: AgentWanted) -> Agent:
        """Create an agent, or change its group, labels, policy or given root."""
        body = asdict(wanted)
        if wanted.root is None:
            del body["root"]  # earlier servers do not know it
        return self._call(fleet.PUT_AGENT, agent_id, body=body)

    def root(self, agent_id: str, wanted: AgentRootRequest) -> Agent:
        """Let an agent have an existing provider as the root of its machine."""
        return self._call(fleet.GIVE_ROOT_AGENT, agent_id, body=wanted)

    def enroll(self, agent_id: str, wanted: EnrollRequest) -> Enrolled:
        """Create an agent that an operator must still accept; the answer has its token."""
        return self._call(fleet.ENROLL_AGENT, agent_id, body=wanted)

    def desired(self, agent_id: str, wanted: DesiredRequest) -> Agent:
        """Set how much a machine should have of a class."""
        return self._call(fleet.SET_AGENT_DESIRED, agent_id, body=wanted)

    def policy(self, agent_id: str, action: str, wanted: PolicyRequest) -> Agent:
        """Drain, resume, expunge or decommission a machine; repeats change nothing."""
        return self._call(POLICIES[action], agent_id, body=wanted)

    def groups(self) -> Iterator[AgentGroup]:
        """Yield all groups, by name."""
        for page in self._pages(fleet.LIST_GROUPS):
            yield from page.groups

    def group(self, name: str) -> AgentGroup:
        """Return a group."""
        return self._call(fleet.GET_GROUP, name)

    def group_put(self, name: str, wanted: GroupWanted) -> AgentGroup:
        """Create a group, or replace its defaults; its members follow."""
        return self._call(fleet.PUT_GROUP, name, body=wanted)

    def group_delete(self, name: str) -> None:
        """Delete a group without active agents."""
        self._call(fleet.DELETE_GROUP, name)

    def group_confirm(self, name: str) -> AgentGroup:
        """Declare the silent members of a suspect group lost."""
        return self._call(fleet.CONFIRM_GROUP, name)

    def group_wait(self, name: str, wanted: GroupWaitRequest) -> AgentGroup:
        """Declare no member of a group lost for some time."""
        return self._call(fleet.WAIT_GROUP, name, body=wanted)
