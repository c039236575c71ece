"""The typed native API of reporters: their groups, pins and reports.

A reporter finds its own nodes with `wire.rendezvous.owner`, from the live members that each `join`
returns and the pins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from moorage.client.calling import Room
from moorage.wire.operations import reporting
from moorage.wire.reporting import (
    Membership,
    MemberWanted,
    NodeOutcomes,
    NodeOwned,
    ObservedWanted,
    PinsWanted,
    ReporterGroup,
    ReportWanted,
)

CHUNK = 1_000
"""Nodes of a long report that are sent at once: a takeover is noticed soon."""


class Reporting(Room):
    """The groups of reporters of one server.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server. All calls are safe to repeat.
    """

    def join(self, group: str, member: str, wanted: MemberWanted) -> Membership:
        """Join a group, or stay in it; repeat it within a third of the TTL.

        RefusedError with the code `fenced`: another instance has taken over.
        """
        return self._call(reporting.JOIN_REPORTER_GROUP, group, member, body=wanted)

    def leave(self, group: str, member: str, instance: str | None = None) -> None:
        """Leave a group, so that the nodes get other owners at once."""
        asked = {"instance": instance}
        self._call(reporting.LEAVE_REPORTER_GROUP, group, member, query=asked)

    def observed(self, group: str, wanted: ObservedWanted) -> ReporterGroup:
        """Replace the members of a group that the caller observes."""
        return self._call(reporting.PUT_OBSERVED_MEMBERS, group, body=wanted)

    def group(self, name: str) -> ReporterGroup:
        """Return a group with all its members."""
        return self._call(reporting.GET_REPORTER_GROUP, name)

    def groups(self) -> Iterator[str]:
        """Yield the names of all groups."""
        for page in self._pages(reporting.LIST_REPORTER_GROUPS):
            yield from page.groups

    def group_delete(self, name: str) -> None:
        """Delete a group that has no live members; its providers stay."""
        self._call(reporting.DELETE_REPORTER_GROUP, name)

    def pins(self, group: str) -> dict[str, str]:
        """Return all pins of a group: the member by node."""
        pages = self._pages(reporting.LIST_PINS, group)
        return {pin.node: pin.member for page in pages for pin in page.pins}

    def pin(self, group: str, wanted: PinsWanted) -> ReporterGroup:
        """Pin nodes to a member, or remove their pins."""
        return self._call(reporting.PIN_NODES, group, body=wanted)

    def nodes(self, group: str) -> Iterator[NodeOwned]:
        """Yield the providers that the reports of a group own, and its ghosts."""
        for page in self._pages(reporting.LIST_REPORTER_GROUP_NODES, group):
            yield from page.nodes

    def ghosts(self, group: str) -> Iterator[str]:
        """Yield the providers that are gone by a report, but are still allocated."""
        for page in self._pages(reporting.LIST_REPORTER_GROUP_GHOSTS, group):
            yield from page.ghosts

    def report(self, wanted: ReportWanted) -> NodeOutcomes:
        """Report nodes, some at a time; return all outcomes.

        RefusedError with the code `fenced`: another instance has taken over; what was sent before
        is done.
        """
        parts = [
            self._call(reporting.SEND_REPORTS, body=replace(wanted, nodes=nodes))
            for nodes in _chunks(wanted.nodes)
        ]
        return _joined(parts)


def _chunks(nodes: Sequence[Any]) -> list[Any]:
    """Cut a list into parts; an empty one is one part, so that it is checked."""
    return [nodes[first : first + CHUNK] for first in range(0, max(1, len(nodes)), CHUNK)]


def _joined(parts: Sequence[NodeOutcomes]) -> NodeOutcomes:
    codes: Counter[str] = Counter()
    for part in parts:
        codes.update(part.codes)
    return NodeOutcomes(
        results=[result for part in parts for result in part.results],
        created=sum(part.created for part in parts),
        updated=sum(part.updated for part in parts),
        unchanged=sum(part.unchanged for part in parts),
        removed=sum(part.removed for part in parts),
        refused=sum(part.refused for part in parts),
        ghosts=sum(part.ghosts for part in parts),
        codes=dict(sorted(codes.items())),
    )
