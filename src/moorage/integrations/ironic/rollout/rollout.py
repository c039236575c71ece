"""A rollout: one pass after the other, until nothing of the wave is left to do."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from moorage.integrations.clock import monotonic
from moorage.integrations.ironic.nodes import Node, NodeReader
from moorage.integrations.ironic.reconcile import (
    SYSTEM,
    Picture,
    Reconciler,
)
from moorage.integrations.ironic.rollout.report import RolloutReport, report_of
from moorage.integrations.ironic.rollout.wave import WAVE, Member, Phase, Wave, counts, may_start
from moorage.integrations.ironic.rules import Rules
from moorage.integrations.ironic.starting import NodeRequests, start_of
from moorage.integrations.ironic.wishes import hindrance_of, is_needless
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.host_starter import HostStarter
from moorage.integrations.provisioning.line import Line
from moorage.integrations.provisioning.start import PASS_ERRORS, Start, StartResult
from moorage.integrations.provisioning.unit_release import RequestOutcome
from moorage.wire.admission import Lease

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
        # What is answered from now on, nodes and leases of this pass may not show yet.
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
            if start is not None and picture.uncounted.isdisjoint(start.needs):
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
