"""Ironic in memory: the fleet and the API of the double, in the time of the loop."""

import json
from collections.abc import Callable, Mapping
from random import Random

from tests.simulation.provisioning.auditor import Origin
from tests.support.ironic_double.agenda import Agenda
from tests.support.ironic_double.api import Api
from tests.support.ironic_double.fleet import Fleet, Node
from tests.support.ironic_double.requests import Received

NOBODY = Origin("Ironic")


class WatchedFleet(Fleet):
    """A fleet that says when a host begins to work and when it works no more."""

    def __init__(self, agenda: Agenda, limit: int = 1_000) -> None:
        super().__init__(agenda, limit=limit)
        self.origin = NOBODY
        self.began: Callable[[Node, Origin], None] = lambda *_: None
        self.over: Callable[[Node], None] = lambda _: None

    def _enter(self, node: Node, state: str, goal: str | None, *, resumed: bool = False) -> None:
        was = node.uuid in self.busy
        super()._enter(node, state, goal, resumed=resumed)
        if node.uuid in self.busy and not was:
            self.began(node, self.origin)
        if was and node.uuid not in self.busy:
            self.over(node)

    def remove(self, node: Node) -> None:
        was = node.uuid in self.busy
        super().remove(node)
        if was:
            self.over(node)


class Ironic:
    """One Ironic; `away` is how it answers nobody: `refused`, `unavailable`, or not at all so."""

    def __init__(self) -> None:
        self.agenda = Agenda(scale=1.0)
        self.fleet = WatchedFleet(self.agenda)
        self.away: str | None = None
        self._api = Api(self.fleet)

    def last(self, random: Random) -> None:
        """Choose how long each kind of work lasts: from too short to be seen up to 40 seconds."""
        scale = random.choice([0.02, 0.2, 1.0])
        for state in self.fleet.seconds:
            longest = 40.0 if state in ("deploying", "cleaning") else 10.0
            self.fleet.seconds[state] = scale * random.uniform(1.0, longest)

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, origin: Origin
    ) -> tuple[int, bytes]:
        """Carry out a request of somebody."""
        if self.away is not None:
            return 503, b"{}"
        self.agenda.catch_up()
        self.fleet.origin = origin
        try:
            reply = self._api.answer(Received(self.agenda.now, method, path, headers, body))
        finally:
            self.fleet.origin = NOBODY
        return reply.status, b"" if reply.body is None else json.dumps(reply.body).encode()

    def provision(self, node: Node, target: str, origin: Origin) -> int:
        """Ask for a provision state past every gate."""
        headers = {"content-type": "application/json", "x-openstack-ironic-api-version": "1.82"}
        sent: dict[str, object] = {"target": target}
        if target in ("clean", "service"):
            sent[f"{target}_steps"] = [{"interface": "deploy", "step": "erase"}]
        path = f"/v1/nodes/{node.uuid}/states/provision"
        return self.answer("PUT", path, headers, json.dumps(sent).encode(), origin)[0]
