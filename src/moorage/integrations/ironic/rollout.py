"""A rollout: one pass after the other, until nothing of the wave is left to do.

A wave that was killed continues with the same command: a node that is done stays done, one on which
Ironic works is followed, and one that has failed in this wave is not tried again.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from hashlib import sha256
from math import ceil
from typing import Any

from moorage.integrations.clock import monotonic
from moorage.integrations.ironic.nodes import Node, NodeReader
from moorage.integrations.ironic.reconcile import (
    SYSTEM,
    Picture,
    Reconciler,
)
from moorage.integrations.ironic.rules import Rules
from moorage.integrations.ironic.starting import NodeRequests, start_of
from moorage.integrations.ironic.states import DONE, VERBS_OF_STATE, is_busy
from moorage.integrations.ironic.wishes import has_begun, hindrance_of, is_needless
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.host_starter import HostStarter
from moorage.integrations.provisioning.line import Line
from moorage.integrations.provisioning.start import PASS_ERRORS, Start, StartResult
from moorage.integrations.provisioning.unit_release import RequestOutcome
from moorage.wire.admission import Lease

WAVE = "wave"
"""The label of a lease that names its wave."""


class Phase(StrEnum):
    """How far a node is."""

    NEW = "new"
    WAITING = "waiting"
    WORKING = "working"
    """It has its units, or Ironic works on it."""
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Member:
    """A node of the wave; `detail` is why it waits or has failed."""

    uuid: str
    name: str
    phase: Phase = Phase.NEW
    detail: str = ""
    place: int | None = None


@dataclass(frozen=True)
class Wave:
    """The nodes of a rollout, and their state.

    `tried`: nodes for which work has begun in this wave. `refused`: nodes for which Ironic has
    refused it, and why.
    """

    name: str
    verb: str
    tried: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    succeeded: set[str] = field(default_factory=set)
    """Nodes of verbs that can always be repeated, for which the work of this wave was done."""

    def remember(self, past: Mapping[str, Collection[Lease]], nodes: Mapping[str, Node]) -> None:
        """Take from leases that have ended which nodes were tried."""
        for uuid, leases in past.items():
            for lease in leases:
                if lease.labels.get(WAVE) != self.name or uuid not in nodes:
                    continue
                if lease.outcome or has_begun(lease.record, nodes[uuid], self.name):
                    self.tried.add(uuid)
                if lease.outcome == "ok":
                    self.succeeded.add(uuid)

    def member(
        self,
        before: Member,
        node: Node | None,
        leases: Collection[Lease],
        tickets: Collection[Lease],
    ) -> Member:
        """Return how far a node is."""
        if node is None:
            return self._at(before, Phase.FAILED, "it is no longer in Ironic")
        state = str(node.get("provision_state"))
        own = [lease for lease in leases if lease.key.endswith(f"/{self.verb}")]
        if own or self.verb in VERBS_OF_STATE.get(state, ()):
            if any(lease.record_version for lease in own) or not own:
                self.tried.add(before.uuid)
            return self._at(before, Phase.WORKING, state)
        if DONE.get(self.verb) == state or before.uuid in self.succeeded:
            return self._at(before, Phase.DONE)
        if before.uuid in self.tried and not leases and not is_busy(state):
            if self.verb not in DONE and state in _kept(self.verb):
                return self._at(before, Phase.DONE)
            return self._at(before, Phase.FAILED, str(node.get("last_error") or f"it is {state}"))
        if before.uuid in self.refused:
            return self._at(before, Phase.FAILED, self.refused[before.uuid])
        if leases or is_busy(state) or node.get("reservation"):
            return self._at(before, Phase.NEW, f"it is {state}")
        if (hindrance := hindrance_of(node, self.verb)) is not None:
            return self._at(before, Phase.FAILED, hindrance)
        for ticket in tickets:
            if ticket.key.endswith(f"/{self.verb}") and ticket.waiting is not None:
                waiting = ticket.waiting
                return self._at(before, Phase.WAITING, waiting.reason, waiting.position)
        return self._at(before, Phase.NEW)

    @staticmethod
    def _at(before: Member, phase: Phase, detail: str = "", place: int | None = None) -> Member:
        return Member(before.uuid, before.name, phase, detail, place)


def counts(members: Collection[Member]) -> Counter[Phase]:
    """Return how many nodes are how far."""
    return Counter(member.phase for member in members)


def may_start(members: Sequence[Member], limit: int) -> list[Member]:
    """Return which nodes may wait for units, so that at most `limit` work at once.

    Those that wait already come first, then the others in the order of the list.
    """
    room = limit - counts(members)[Phase.WORKING]
    waiting = [member for member in members if member.phase is Phase.WAITING]
    new = [member for member in members if member.phase is Phase.NEW and not member.detail]
    return [*waiting, *new][: max(0, room)]


def _kept(verb: str) -> frozenset[str]:
    """Return the states in which a node is after a verb that can always be repeated."""
    after = {"rebuild": "active", "service": "active", "clean": "manageable"}
    return frozenset({after.get(verb, "manageable")})


@dataclass(frozen=True)
class Times:
    """Seconds; None: no node has got so far."""

    median: float | None
    p90: float | None


@dataclass(frozen=True)
class RolloutReport:
    """The outcome of each node. `stopped`: nodes were left out, and why; empty: none."""

    wave: str
    target: str
    done: list[str]
    failed: dict[str, str]
    never_started: list[str]
    working: list[str]
    """Only if the wave was left while Ironic worked."""
    stopped: str
    waiting_seconds: Times
    working_seconds: Times

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def report_of(
    wave: str,
    target: str,
    members: Sequence[Member],
    past: Mapping[str, Collection[Lease]],
    stopped: str,
) -> RolloutReport:
    """Sum up a wave; `past` are leases that have ended."""
    own = [
        lease
        for member in members
        for lease in past.get(member.uuid, ())
        if lease.labels.get(WAVE) == wave and lease.outcome is not None
    ]
    waited = [(one.granted_at - one.asked_at).total_seconds() for one in own if one.granted_at]
    worked = [
        (one.ended_at - one.granted_at).total_seconds()
        for one in own
        if one.granted_at and one.ended_at
    ]
    names = {phase: [one.name for one in members if one.phase is phase] for phase in Phase}
    return RolloutReport(
        wave=wave,
        target=target,
        done=names[Phase.DONE],
        failed={one.name: one.detail for one in members if one.phase is Phase.FAILED},
        never_started=names[Phase.NEW] + names[Phase.WAITING],
        working=names[Phase.WORKING],
        stopped=stopped,
        waiting_seconds=times_of(waited),
        working_seconds=times_of(worked),
    )


def times_of(seconds: Collection[float]) -> Times:
    """Return the median and the 90th percentile, each a measured value (nearest rank)."""
    ranked = sorted(seconds)
    if not ranked:
        return Times(None, None)
    at = [ranked[max(0, ceil(share * len(ranked)) - 1)] for share in (0.5, 0.9)]
    return Times(*at)


OPEN = (Phase.NEW, Phase.WAITING)
ASKED_TO_STOP = "asked to stop"


class UnknownNodesError(ValueError):
    """Some of the listed nodes do not exist, or a name is that of two nodes."""


@dataclass(frozen=True)
class Limits:
    """How many nodes of the wave work at once at most, and how many may fail before it stops."""

    at_once: int
    failures: int


@dataclass(frozen=True)
class Status:
    """How far a wave is. `trouble`: why the last pass has failed; empty: it has not."""

    members: Sequence[Member]
    counts: Counter[Phase]
    eta_seconds: float | None
    stopped: str
    trouble: str = ""


def name_of(uuids: Iterable[str], verb: str) -> str:
    """Return the name of a wave that was given none: of the same nodes and verb always the same."""
    text = " ".join([verb, *sorted(uuids)])
    return f"rollout-{sha256(text.encode()).hexdigest()[:12]}"


def chosen_nodes(nodes: Iterable[Node], idents: Iterable[str]) -> dict[str, Node]:
    """Return the nodes with these names or UUIDs, in this order. Raises UnknownNodesError."""
    found: dict[str, Node] = {}
    for node in nodes:
        for ident in (node["uuid"], node.get("name")):
            if ident:
                found[str(ident)] = node
    idents = [*idents]
    if missing := [ident for ident in idents if ident not in found]:
        raise UnknownNodesError(f"there is no node {', '.join(missing[:10])}")
    return {str(found[ident]["uuid"]): found[ident] for ident in idents}


class Rollout:
    """A wave over nodes."""

    def __init__(
        self,
        host_leases: HostLeases,
        nodes: NodeReader,
        rules: Rules,
        verb: str,
        limits: Limits,
        *,
        hold_counts: bool = False,
    ) -> None:
        self._host_leases = host_leases
        self._nodes = nodes
        self._rules = rules
        self._limits = limits
        self._reconciler = Reconciler(host_leases, nodes, rules, hold_counts=hold_counts)
        requests = NodeRequests(nodes, rules.fields)
        starter = HostStarter(host_leases, requests, self._start_of)
        self._line = Line(
            host_leases,
            starter,
            self._is_own,
            self._answered,
        )
        self._wave = Wave("", verb)
        self._picture = Picture()
        self._members: list[Member] = []
        self._answers: list[tuple[str, StartResult]] = []
        """Ironic's answers since the last pass has begun, by the UUID of the node."""
        self._stopped = ""
        self._asked_to_stop = False
        self._began: dict[str, float] = {}
        """When this process has seen each node begin to work."""
        self._took: list[float] = []

    async def prepare(self, idents: Iterable[str], name: str | None) -> str:
        """Find the nodes, and what was done of the wave before; return the name of the wave.

        Raises UnknownNodesError, IronicError, UnreachableError, RefusedError.
        """
        nodes = chosen_nodes(await self._nodes.all(self._rules.fields), idents)
        self._wave = Wave(name or name_of(nodes, self._wave.verb), self._wave.verb)
        self._wave.remember(await self._host_leases.past(SYSTEM), nodes)
        self._members = [
            Member(uuid, str(node.get("name") or uuid)) for uuid, node in nodes.items()
        ]
        return self._wave.name

    def stop(self) -> bool:
        """Start nothing more, and follow what works; return False if it was asked to before."""
        if self._asked_to_stop:
            return False
        self._asked_to_stop = True
        self._stopped = self._stopped or ASKED_TO_STOP
        return True

    async def tick(self) -> Status:
        """Make one pass."""
        trouble = ""
        try:
            await self._pass()
        except PASS_ERRORS as error:
            self._line.pause()
            trouble = str(error)
        return self._status(trouble)

    def is_over(self, status: Status) -> bool:
        """Return whether nothing is left to do."""
        if status.trouble or status.counts[Phase.WORKING] or self._line.is_sending:
            return False
        left = status.counts[Phase.NEW] + status.counts[Phase.WAITING]
        return not left or bool(self._stopped)

    async def run(
        self, shown: Callable[[Status], None], pause: Callable[[], Any], leave: asyncio.Event
    ) -> None:
        """Make passes until the wave is over, or until `leave`.

        `pause` returns an awaitable that ends when it is time for the next pass.
        """
        while not leave.is_set():
            status = await self.tick()
            shown(status)
            if self.is_over(status):
                break
            await pause()
        await self._line.close()

    async def report(self) -> RolloutReport:
        """Sum up. Raises UnreachableError, RefusedError."""
        past = await self._host_leases.past(SYSTEM)
        left = counts(self._members)
        stopped = self._stopped if left[Phase.NEW] + left[Phase.WAITING] else ""
        return report_of(self._wave.name, self._wave.verb, self._members, past, stopped)

    async def _pass(self) -> None:
        # Nodes and leases of this pass may not show later answers yet.
        self._note(self._answers)
        self._answers = []
        picture = self._picture = await self._reconciler.run_once()
        tickets = await self._host_leases.in_line(SYSTEM)
        before = {member.uuid: member for member in self._members}
        self._members = [
            self._wave.member(
                member,
                picture.nodes.get(member.uuid),
                picture.leases.get(member.uuid, ()),
                tickets.get(member.uuid, ()),
            )
            for member in self._members
        ]
        self._time(before)
        failed = counts(self._members)[Phase.FAILED]
        if failed > self._limits.failures and not self._stopped:
            self._stopped = f"{failed} nodes have failed"
        kept = () if self._stopped else {one.uuid for one in self._members if one.phase in OPEN}
        await self._line.follow(self._starts(picture), tickets, kept)

    def _is_own(self, ticket: Lease) -> bool:
        return ticket.labels.get(WAVE) == self._wave.name and self._reconciler.governs(ticket)

    def _starts(self, picture: Picture) -> list[Start]:
        if self._stopped:
            return []
        starts = []
        for member in may_start(self._members, self._limits.at_once):
            start = self._start_of(picture.nodes[member.uuid])
            if start is not None and not picture.blocked(start.host.uuid, start.needs):
                starts.append(start)
        return starts

    def _start_of(self, node: Node) -> Start | None:
        verb = self._wave.verb
        if self._stopped or is_needless(node, verb) or hindrance_of(node, verb):
            return None
        needs = self._rules.needs(node, {verb}, self._picture.warm)
        return start_of(node, verb, needs, {"target": verb}, (WAVE, self._wave.name))

    def _answered(self, start: Start, answer: StartResult) -> None:
        self._answers.append((start.host.uuid, answer))

    def _note(self, answers: Iterable[tuple[str, StartResult]]) -> None:
        for uuid, answer in answers:
            if answer.outcome is RequestOutcome.ACCEPTED:
                self._wave.tried.add(uuid)
            elif answer.outcome is RequestOutcome.REFUSED and not answer.soon:
                self._wave.refused[uuid] = answer.text

    def _time(self, before: Mapping[str, Member]) -> None:
        now = monotonic()
        for member in self._members:
            if member.phase is Phase.WORKING:
                self._began.setdefault(member.uuid, now)
            elif before[member.uuid].phase is Phase.WORKING and member.uuid in self._began:
                self._took.append(now - self._began.pop(member.uuid))

    def _status(self, trouble: str) -> Status:
        found = counts(self._members)
        eta = None
        if self._took and not self._stopped:
            typical = sorted(self._took)[len(self._took) // 2]
            left = found[Phase.NEW] + found[Phase.WAITING]
            at_once = max(1, min(self._limits.at_once, found[Phase.WORKING] or 1))
            eta = typical * (left / at_once + (0.5 if found[Phase.WORKING] else 0.0))
        return Status(tuple(self._members), found, eta, self._stopped, trouble)
