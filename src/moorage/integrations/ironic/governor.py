"""The governor: one pass after the other, each from what Ironic and Moorage say now.

A pass adopts what is busy and releases what is over; then it asks for the nodes that wish to start.
So nothing is asked before everything that works is counted.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from moorage.integrations.ironic.nodes import IronicError, Node, NodeReader
from moorage.integrations.ironic.reconcile import NODES, SYSTEM, Picture, Reconciler
from moorage.integrations.ironic.rules import Rules
from moorage.integrations.ironic.starting import NodeRequests, start_of
from moorage.integrations.ironic.wishes import (
    WANT,
    InvalidWishError,
    Wish,
    hindrance_of,
    is_needless,
    is_of_project,
    valid_wish_of,
    wish_of,
)
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.host_starter import HostStarter
from moorage.integrations.provisioning.line import Line
from moorage.integrations.provisioning.notes import UNREADABLE, Note, NoteWriter, notes_of
from moorage.integrations.provisioning.pass_metrics import GovernorMetrics
from moorage.integrations.provisioning.passes import Passes
from moorage.integrations.provisioning.start import Start
from moorage.wire.admission import Lease

WISH = "wish"
"""The label of leases that were asked for because of a wish."""

log = logging.getLogger("moorage.ironic")


class Governor:
    """Governs the nodes of one Ironic."""

    def __init__(
        self,
        host_leases: HostLeases,
        nodes: NodeReader,
        rules: Rules,
        *,
        hold_counts: bool = False,
        project_wishes: bool = False,
    ) -> None:
        """Prepare to govern; `project_wishes`: also carry out those on nodes of projects."""
        self._project_wishes = project_wishes
        self._host_leases = host_leases
        self._nodes = nodes
        self._rules = rules
        self._reconciler = Reconciler(host_leases, nodes, rules, hold_counts=hold_counts)
        requests = NodeRequests(nodes, rules.fields)
        starter = HostStarter(host_leases, requests, self._start_of)
        self._line = Line(host_leases, starter, self._is_own)
        self._notes = Notes(nodes)
        self._picture = Picture()
        self.metrics = GovernorMetrics(NODES, Picture())
        self._passes = Passes(self._pass, self._line, log, self.metrics.failed)

    async def tick(self) -> bool:
        """Make one pass; return whether it succeeded. It says when it begins and ends to fail."""
        return await self._passes.tick()

    async def close(self) -> None:
        """Wait for nothing more; return when requests that are being sent are answered."""
        await self._line.close()

    async def _pass(self) -> None:
        picture = self._picture = await self._reconciler.run_once()
        tickets = await self._host_leases.in_line(SYSTEM)
        await self._forget_wishes(picture)
        starts, remarks, kept = self._starts(picture)
        await self._line.follow(starts, tickets, remarks.keys() | kept)
        self.metrics.passed(picture)
        self.metrics.waits(tickets)
        notes = notes_of(tickets, {**self._line.remarks, **remarks}, picture.busy)
        await self._notes.write(picture.nodes, notes)

    def _is_own(self, ticket: Lease) -> bool:
        return WISH in ticket.labels and self._reconciler.governs(ticket)

    async def _forget_wishes(self, picture: Picture) -> None:
        """Remove wishes of nodes that do already what they wish for, or have done it."""
        for uuid, node in picture.nodes.items():
            wish = valid_wish_of(node)
            if wish is None or not is_needless(node, wish.verb) or node.get("reservation"):
                continue
            status = await self._nodes.extra_put(uuid, WANT, None)
            if status >= HTTPStatus.BAD_REQUEST:
                log.debug("cannot remove the wish of node %s yet: Ironic answered %s", uuid, status)

    def _starts(self, picture: Picture) -> tuple[list[Start], dict[str, str], set[str]]:
        """Return what can be started now, why other wishes cannot, by UUID, and what must wait."""
        starts, remarks, kept = [], {}, set[str]()
        for uuid, node in picture.nodes.items():
            try:
                wish = wish_of(node)
            except InvalidWishError as error:
                remarks[uuid] = str(error)
                continue
            if wish is None or is_needless(node, wish.verb) or uuid in picture.busy:
                continue
            if not self._may_wish(node):
                remarks[uuid] = (
                    "it has an owner or a lessee, whose wishes need the option --project-wishes"
                )
                continue
            if (hindrance := hindrance_of(node, wish.verb)) is not None:
                remarks[uuid] = hindrance
                continue
            start = self._start(node, wish)
            if not picture.blocked(start.host.uuid, start.needs) and not start.must_wait(
                picture.leases.get(uuid, ())
            ):
                starts.append(start)
            else:
                kept.add(uuid)
        return starts, remarks, kept

    def _start_of(self, node: Node) -> Start | None:
        wish = valid_wish_of(node)
        if wish is None or is_needless(node, wish.verb) or hindrance_of(node, wish.verb):
            return None
        return self._start(node, wish) if self._may_wish(node) else None

    def _may_wish(self, node: Node) -> bool:
        return self._project_wishes or not is_of_project(node)

    def _start(self, node: Node, wish: Wish) -> Start:
        needs = self._rules.needs(node, {wish.verb}, self._picture.warm)
        return start_of(node, wish.verb, needs, wish.body, (WISH, wish.digest))


NOTE: Final = "moorage"
"""The member of `extra`."""

WAITING = "waiting"


class Notes:
    """Writes the notes of one Ironic's nodes."""

    def __init__(self, nodes: NodeReader) -> None:
        self._nodes = nodes
        self._writer = NoteWriter(self._put)

    async def write(self, nodes: Mapping[str, Node], wanted: Mapping[str, Note]) -> None:
        """Make nodes say what they should; those that Ironic has locked follow later."""
        await self._writer.write({uuid: said_by(node) for uuid, node in nodes.items()}, wanted)

    async def _put(self, uuid: str, note: Note | None) -> bool:
        value = None if note is None else {WAITING: note}
        try:
            return await self._nodes.extra_put(uuid, NOTE, value) < HTTPStatus.BAD_REQUEST
        except IronicError as error:
            log.debug("cannot write the note on node %s: %s", uuid, error)
            return False


def said_by(node: Node) -> Note | None:
    """Return what a node says; None: nothing."""
    extra = node.get("extra")
    found = extra.get(NOTE) if isinstance(extra, Mapping) else None
    if found is None:
        return None
    note = found.get(WAITING) if isinstance(found, Mapping) else None
    return note if isinstance(note, dict) else UNREADABLE
