"""The calls of the native API that agents and local starters need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from moorage.client.agent.api_types import StartAnswer, start_of
from moorage.client.agent.protocol import ALIVE, REGISTER, REPORT, Request
from moorage.client.run.lease.api import ANSWER_SECONDS
from moorage.client.transport import Transport
from moorage.wire.operations import fleet
from moorage.wire.operations.operation import Operation

OPERATIONS: dict[str, Operation[Any]] = {
    REGISTER: fleet.REGISTER_AGENT,
    REPORT: fleet.PUT_AGENT_REPORT,
    ALIVE: fleet.SEND_SIGN_OF_LIFE,
}


class AgentServer:
    """Sends the requests of one agent."""

    def __init__(self, connect: Callable[[], Transport], agent: UUID) -> None:
        """`connect` is called before each register: the token may have been replaced."""
        self._connect = connect
        self._transport: Transport | None = None
        self._agent = str(agent)

    def send(self, request: Request) -> Any:
        """Send a request; return the decoded answer.

        Raises UnreachableError, RefusedError; OSError, ValueError: the token cannot be read.
        """
        if self._transport is None or request.kind == REGISTER:
            self._transport = self._connect()
        operation = OPERATIONS[request.kind]
        address = operation.address(self._agent)
        return self._transport.request(
            operation.method, address, request.body, seconds_max=ANSWER_SECONDS
        )

    def may_start(self, consumer: UUID, boot_id: str, wait: float) -> StartAnswer:
        """Ask whether a consumer may start; wait up to `wait` seconds until it may.

        Raises the errors of `send`, and StrangeAnswerError.
        """
        if self._transport is None:
            self._transport = self._connect()
        asked = {"boot_id": boot_id, "wait": f"{wait:g}"}
        address = fleet.GET_START.address(self._agent, str(consumer), query=asked)
        return start_of(self._transport.request("GET", address, seconds_max=wait + ANSWER_SECONDS))
