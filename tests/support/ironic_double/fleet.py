"""The nodes of the double, the work on them, and a truthful log of both."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from moorage.integrations.ironic.states import BUSY
from tests.support.ironic_double import errors
from tests.support.ironic_double.agenda import Agenda
from tests.support.ironic_double.machine import (
    DELETE_ALLOWED,
    GOALS,
    MANUAL_END,
    TRANSITIONS,
    WAITING,
    WORKING,
)

HOST = "moorage"
EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
SECONDS: Mapping[str, float] = {
    **dict.fromkeys(WORKING, 60.0),
    **dict.fromkeys(WAITING.values(), 300.0),
    "deploying": 300.0,
}
WAITS_FOREVER = "trigger_servicewait"
"""A step of Ironic's fake hardware: the node waits, and the step cannot be aborted."""


@dataclass
class Node:
    """A node: what clients may set is in `members`, the rest is Ironic's."""

    uuid: str
    number: int
    members: dict[str, Any]
    state: str = "enroll"
    goal: str | None = None
    power: str | None = None
    error: str | None = None
    created: float = 0.0
    updated: float | None = None
    entered: float | None = None
    lock: str | None = None
    """The host that has locked it by a fault; work locks it anyway."""
    work: int = 0
    """Numbers the works: what was planned for an earlier one does not happen."""
    fails: bool = False
    """Whether the next work fails."""
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str | None:
        """Its name; None: it has none."""
        return self.members.get("name")

    @property
    def reservation(self) -> str | None:
        """The host that works on it, or None."""
        return self.lock or (HOST if self.state in WORKING else None)

    @property
    def waits_forever(self) -> bool:
        """Whether its work has a step that never ends."""
        return any(step.get("step") == WAITS_FOREVER for step in self.steps)


@dataclass(frozen=True)
class Change:
    """A node has entered a state, at a virtual second."""

    time: float
    node: str
    state: str
    goal: str | None


class Fleet:
    """All nodes. `seconds` is how long each state lasts, `agent`: work waits for the agent.

    `limit` is Ironic's own for deployments. `busiest` is the largest number of nodes that were ever
    busy at once.
    """

    def __init__(self, agenda: Agenda, *, agent: bool = False, limit: int = 1_000) -> None:
        self.agenda, self.agent, self.limit = agenda, agent, limit
        self.seconds = dict(SECONDS)
        self.nodes: dict[str, Node] = {}
        self.history: list[Change] = []
        self.busy: set[str] = set()
        self.busiest = 0
        self.conductors = {HOST: True}
        """By host name, whether each is alive."""
        self.hidden: set[str] = set()
        """Nodes that lists omit, as while a page is read they may."""
        self.nothing_last = True
        """Whether what has no value follows in descending order; PostgreSQL begins with it."""
        self._numbers = count(1)

    def add(self, members: Mapping[str, Any], state: str = "enroll") -> Node:
        """Enrol a node."""
        number = next(self._numbers)
        uuid = str(members.get("uuid") or f"00000000-0000-4000-8000-{number:012}")
        kept = {name: value for name, value in members.items() if name != "uuid"}
        node = Node(uuid, number, kept, state, created=self.agenda.now)
        self.nodes[uuid] = node
        return node

    def find(self, ident: str, *, by_name: bool = True) -> Node:
        """Return a node by its UUID or its name. Raises Refused."""
        if ident in self.nodes:
            return self.nodes[ident]
        for node in self.nodes.values() if by_name else ():
            if node.name == ident:
                return node
        raise errors.not_found(ident)

    def ask(self, node: Node, event: str, steps: list[dict[str, Any]]) -> None:
        """Do what a verb means; the state of the node allows it. Raises Refused."""
        state = TRANSITIONS[event][node.state]
        if node.reservation:
            raise errors.locked(node.uuid, node.reservation)
        if state == "deploying" and self._deploying() >= self.limit:
            raise errors.limit_reached()
        if event == "abort" and node.waits_forever:
            return
        if state in WORKING:
            node.error = None
        node.work, node.steps = node.work + 1, steps
        self._enter(node, state, MANUAL_END if event == "clean" else GOALS.get(state))

    def _deploying(self) -> int:
        states = ("deploying", "wait call-back")
        return sum(node.state in states for node in self.nodes.values())

    def _enter(self, node: Node, state: str, goal: str | None, *, resumed: bool = False) -> None:
        node.state, node.goal = state, goal
        node.entered = node.updated = self.agenda.now
        self.history.append(Change(self.agenda.now, node.name or node.uuid, state, goal))
        (self.busy.add if state in BUSY else self.busy.discard)(node.uuid)
        self.busiest = max(self.busiest, len(self.busy))
        if state in BUSY and not (state in WAITING.values() and node.waits_forever):
            work = node.work
            self.agenda.at(self.seconds[state], lambda: self._ended(node, work, resumed))

    def _ended(self, node: Node, work: int, resumed: bool) -> None:
        """A busy state is over: enter the next one, unless something else has happened."""
        if node.work != work or node.uuid not in self.nodes:
            return
        state, goal = node.state, node.goal
        if state in WAITING.values():
            back = next(start for start, wait in WAITING.items() if wait == state)
            return self._enter(node, back, goal, resumed=True)
        waits = self.agent or node.waits_forever
        if state in WAITING and waits and not resumed and not node.fails:
            return self._enter(node, WAITING[state], goal)
        self._finish(node, "It failed on demand." if node.fails else None)

    def _finish(self, node: Node, failure: str | None) -> None:
        success, failed = WORKING[node.state]
        if node.state == "cleaning" and not failure and node.goal:
            success = node.goal
        after = failed if failure else success
        node.error, node.fails = failure or node.error, node.fails and not failure
        if node.state == "inspecting":
            node.members["inspection_finished_at"] = timestamp(self.agenda.now)
        if after == "cleaning":
            node.members.pop("instance_uuid", None)
            node.members["instance_info"] = {}
        self._enter(node, after, GOALS.get(after))

    def restart(self) -> None:
        """Ironic is killed and started again: what it worked on has failed, locks are gone."""
        for node in self.nodes.values():
            node.lock = None
            if node.state in WORKING:
                node.work += 1
                self._finish(
                    node,
                    f"The {node.state} state can't be resumed by conductor {HOST}. Moving to fail "
                    "state.",
                )

    def lock(self, ident: str, seconds: float | None = None) -> None:
        """Lock a node, for a time or until `restart`."""
        node = self.find(ident)
        node.lock = HOST
        if seconds is not None:
            self.agenda.at(seconds, lambda: setattr(node, "lock", None))

    def remove(self, node: Node) -> None:
        """Delete a node. Raises Refused."""
        if node.reservation:
            raise errors.locked(node.uuid, node.reservation)
        if node.state not in DELETE_ALLOWED and not node.members.get("maintenance"):
            raise errors.fault(
                409,
                f'Can not delete node "{node.uuid}" while it is in provision state "{node.state}". '
                f'Valid provision states to perform deletion are: "{DELETE_ALLOWED}", or set the '
                "node into maintenance mode",
            )
        del self.nodes[node.uuid]
        self.busy.discard(node.uuid)

    def touch(self, node: Node, **members: Any) -> None:
        """Change members of a node."""
        node.members.update(members)
        node.updated = self.agenda.now


def date(seconds: float) -> datetime:
    """Return the time of a virtual second."""
    return EPOCH + timedelta(seconds=seconds)


def timestamp(seconds: float | None) -> str | None:
    """Return a virtual second as Ironic writes it."""
    return None if seconds is None else date(seconds).isoformat()
