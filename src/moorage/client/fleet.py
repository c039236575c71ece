"""The typed native API of the fleet: agents and their groups, for operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from moorage.client.decoding import decode
from moorage.client.transport import Transport
from moorage.wire.fleet import (
    Agent,
    AgentGroup,
    AgentPage,
    AgentRootRequest,
    AgentWanted,
    DesiredRequest,
    Enrolled,
    EnrollRequest,
    GroupPage,
    GroupWaitRequest,
    GroupWanted,
    PolicyRequest,
)
from moorage.wire.pages import PAGE_MAX

T = TypeVar("T")


class Fleet:
    """The agents and groups of one server.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def agents(self, **filters: str | bool | None) -> Iterator[Agent]:
        """Yield agents by UUID; the filters are those of `wire.fleet.AgentsAsked`."""
        cursor: str | None = None
        while True:
            asked = {**filters, "cursor": cursor, "limit": PAGE_MAX}
            page = self._ask(AgentPage, "GET", _address("/v1/agents", asked))
            yield from page.agents
            if (cursor := page.next) is None:
                return

    def agent(self, agent_id: str) -> Agent:
        """Return an agent."""
        return self._ask(Agent, "GET", _agent(agent_id))

    def agent_put(self, agent_id: str, wanted: AgentWanted) -> Agent:
        """Create an agent, or change its group, labels, policy or given root."""
        body = asdict(wanted)
        if wanted.root is None:
            del body["root"]  # earlier servers do not know it
        return self._ask(Agent, "PUT", _agent(agent_id), body)

    def root(self, agent_id: str, wanted: AgentRootRequest) -> Agent:
        """Let an agent have an existing provider as the root of its machine."""
        return self._ask(Agent, "PUT", f"{_agent(agent_id)}/root", asdict(wanted))

    def enroll(self, agent_id: str, wanted: EnrollRequest) -> Enrolled:
        """Create an agent that an operator must still accept; the answer has its token."""
        return self._ask(Enrolled, "POST", f"{_agent(agent_id)}/enroll", asdict(wanted))

    def desired(self, agent_id: str, wanted: DesiredRequest) -> Agent:
        """Set how much a machine should have of a class."""
        return self._ask(Agent, "POST", f"{_agent(agent_id)}/desired", asdict(wanted))

    def policy(self, agent_id: str, action: str, wanted: PolicyRequest) -> Agent:
        """Drain, resume, expunge or decommission a machine; repeats change nothing."""
        body = asdict(wanted)
        if wanted.until is not None:
            body["until"] = wanted.until.isoformat()
        return self._ask(Agent, "POST", f"{_agent(agent_id)}/{action}", body)

    def groups(self) -> Iterator[AgentGroup]:
        """Yield all groups, by name."""
        cursor: str | None = None
        while True:
            asked = {"cursor": cursor, "limit": PAGE_MAX}
            page = self._ask(GroupPage, "GET", _address("/v1/groups", asked))
            yield from page.groups
            if (cursor := page.next) is None:
                return

    def group(self, name: str) -> AgentGroup:
        """Return a group."""
        return self._ask(AgentGroup, "GET", _group(name))

    def group_put(self, name: str, wanted: GroupWanted) -> AgentGroup:
        """Create a group, or replace its defaults; its members follow."""
        return self._ask(AgentGroup, "PUT", _group(name), asdict(wanted))

    def group_delete(self, name: str) -> None:
        """Delete a group without active agents."""
        self._transport.request("DELETE", _group(name))

    def group_confirm(self, name: str) -> AgentGroup:
        """Declare the silent members of a suspect group lost."""
        return self._ask(AgentGroup, "POST", f"{_group(name)}:confirm")

    def group_wait(self, name: str, wanted: GroupWaitRequest) -> AgentGroup:
        """Declare no member of a group lost for some time."""
        return self._ask(AgentGroup, "POST", f"{_group(name)}:wait", asdict(wanted))

    def _ask(self, kind: type[T], method: str, path: str, body: Any = None) -> T:
        return decode(kind, self._transport.request(method, path, body))


def _agent(agent_id: str) -> str:
    return f"/v1/agents/{quote(agent_id, safe='')}"


def _group(name: str) -> str:
    return f"/v1/groups/{quote(name)}"


def _address(path: str, asked: dict[str, Any]) -> str:
    values = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in asked.items()
        if value is not None
    }
    return f"{path}?{urlencode(values)}" if values else path
