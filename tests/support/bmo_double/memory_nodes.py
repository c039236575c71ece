"""Nodes in memory, with the state machine of Ironic and durations in virtual seconds."""

from dataclasses import dataclass, field, replace
from random import Random

from tests.support.bmo_double.book import Book
from tests.support.bmo_double.nodes import Seen, Transient
from tests.support.ironic_double.agenda import Agenda
from tests.support.ironic_double.machine import EVENTS, MANUAL_END, TRANSITIONS, WORKING

SECONDS = {
    "verifying": 2.0,
    "inspecting": 60.0,
    "cleaning": 30.0,
    "deploying": 120.0,
    "deleting": 5,
}


@dataclass
class MemoryNodes:
    """All nodes. `failing`: the share of nodes of which the first deployment fails.

    Whether it does depends on the name and the seed, not on the order of deployments. `latency`:
    the seconds that an answer takes; what it says may be out of date by then. `broken`: the states,
    by node, in which its work always fails, as with a BMC that does not answer.
    """

    agenda: Agenda
    seconds: dict[str, float] = field(default_factory=lambda: dict(SECONDS))
    failing: float = 0.0
    seed: int = 1
    latency: float = 0.05
    book: Book = field(default_factory=Book)
    broken: dict[str, set[str]] = field(default_factory=dict)
    _manual: set[str] = field(default_factory=set)
    """Those that are cleaned by hand."""
    _nodes: dict[str, Seen] = field(default_factory=dict)

    def fails(self, name: str) -> bool:
        """Return whether the first deployment of a node fails."""
        return Random(f"{self.seed} {name}").random() < self.failing

    def fails_now(self, name: str) -> bool:
        """Return whether the deployment of a node that ends now fails."""
        return self.fails(name) and self.book.times(name, "deploying") == 1

    async def get(self, name: str) -> Seen | None:
        """Return a node; None: there is none."""
        found = self._nodes.get(name)
        await self._answer()
        return found

    async def create(self, name: str) -> None:
        """Enrol a node."""
        self._set(Seen(name, "enroll"))

    async def change(self, name: str, target: str) -> bool:
        """Carry out a verb; False: the node is busy. Raises Transient if the verb is wrong."""
        await self._answer()
        node = self._nodes[name]
        if node.state in WORKING:
            return False
        state = TRANSITIONS[EVENTS[target]].get(node.state)
        if state is None:
            raise Transient(f"{target} is not possible from {node.state}")
        self._manual -= {name}
        self._manual |= {name} if target == "clean" else set()
        self._set(replace(node, state=state, error=""))
        self._work(name)
        return True

    async def power(self, name: str, *, on: bool) -> bool:
        """Switch a node; False: it is busy."""
        await self._answer()
        if self._nodes[name].state in WORKING:
            return False
        self._nodes[name] = replace(self._nodes[name], powered=on)
        return True

    async def remove(self, name: str) -> None:
        """Remove a node."""
        self._set(replace(self._nodes.pop(name), state="gone"))
        del self._nodes[name]

    async def all(self) -> list[Seen]:
        """Return all nodes."""
        found = [*self._nodes.values()]
        await self._answer()
        return found

    async def _answer(self) -> None:
        self.agenda.catch_up()
        await self.agenda.wait(self.latency, lambda: None)

    def _set(self, node: Seen) -> None:
        self._nodes[node.name] = node
        self.book.note(self.agenda.now, node.name, node.state)

    def _work(self, name: str) -> None:
        state = self._nodes[name].state
        if state in WORKING:
            self.agenda.at(self.seconds.get(state, 1.0), lambda: self._end(name, state))

    def _end(self, name: str, state: str) -> None:
        node = self._nodes[name]
        good, bad = WORKING[state]
        deploying = state == "deploying"
        if state in self.broken.get(name, ()):
            self._set(replace(node, state=bad, error=f"{state} failed"))
            return
        if state == "cleaning" and name in self._manual:
            good = MANUAL_END
        if deploying and self.fails_now(name):
            self._set(replace(node, state=bad, error="the deployment failed"))
            return
        inspected = node.inspected or state == "inspecting"
        powered = deploying or node.powered
        self._set(replace(node, state=good, inspected=inspected, powered=powered))
        self._work(name)
