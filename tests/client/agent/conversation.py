"""An agent's protocol and a server, without a network, on a clock that is set by hand."""

from collections.abc import Mapping
from typing import Any

from moorage.client.agent.api_types import Observation, Part
from moorage.client.agent.backoff import Backoff
from moorage.client.agent.plan import Plan
from moorage.client.agent.protocol import Machine, Protocol, Request
from moorage.client.transport import RefusedError
from tests.client.agent.fleet_server import FleetServer, Refusal

BOOT = "3a1a91f3-0595-4f77-9bc3-11133fdd4585"
CLASS = "CUSTOM_HUGEPAGES_2MB"
NUMA0 = Part("8d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55", "numa0", ((CLASS, 8192),))
NUMA1 = Part("9d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55", "numa1", ((CLASS, 8192),))


class Conversation:
    """An agent and a server, without a network; delays are as long as the jitter permits."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.protocol = Protocol(
            Machine(BOOT, "host", "6.1", "1.0", labels=(("rack", "7"),)),
            Backoff(1.0, 60.0, lambda low, high: high),
            plan,
        )
        self.server = FleetServer()
        self.now = 1000.0

    def observe(self, pages: int, done: bool = True, parts: tuple[Part, ...] = (NUMA0,)) -> None:
        """Observe an amount in each part, compared with the newest orders."""
        generation = self.protocol.desired_generation
        orders = None if self.protocol.desired is None else generation
        actual = {part.provider: {CLASS: pages} for part in parts}
        self.protocol.observe(Observation(parts, actual, orders, done))

    def due(self) -> str:
        """Return the kind of the request that is due now; nothing is sent."""
        request = self.protocol.next_request(self.now)
        return "" if request is None else request.kind

    def exchange(self) -> list[str]:
        """Send and answer everything that is due now; return the kinds."""
        kinds = []
        while (request := self.protocol.next_request(self.now)) is not None:
            kinds.append(request.kind)
            self.answer(request)
        return kinds

    def answer(self, request: Request) -> None:
        """Answer a request as the server does."""
        try:
            self.protocol.answered(self.server.take(request.kind, request.body), self.now)
        except Refusal as refusal:
            self.refuse(refusal.status, refusal.code, problem=refusal.members)

    def refuse(
        self,
        status: int,
        code: str,
        retry_after: float | None = None,
        problem: Mapping[str, Any] | None = None,
    ) -> None:
        """Refuse the outstanding request."""
        error = RefusedError(status, code, f"refused: {code}", "-")
        error.problem = {} if problem is None else problem
        error.retry_after = retry_after
        self.protocol.failed(error, self.now)

    def pass_to_next(self) -> float:
        """Let time pass until the next request is due; return how long that was."""
        wait = self.protocol.due_in(self.now)
        assert wait is not None
        self.now += wait
        return wait
