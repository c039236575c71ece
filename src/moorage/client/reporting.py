"""The typed native API of reporters: their groups, pins and reports.

A reporter finds its own nodes with `wire.rendezvous.owner`, from the live members that each `join`
returns and the pins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from moorage.client.decoding import decode
from moorage.client.transport import Transport
from moorage.wire.pages import PAGE_MAX
from moorage.wire.reporting import (
    GhostPage,
    Membership,
    MemberWanted,
    NodeOutcomes,
    NodeOwned,
    NodePage,
    ObservedWanted,
    PinPage,
    PinsWanted,
    ReporterGroup,
    ReporterGroupPage,
    ReportWanted,
)

T = TypeVar("T")

CHUNK = 1_000
"""Nodes of a long report that are sent at once: a takeover is noticed soon."""


class Reporting:
    """The groups of reporters of one server.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server. All calls are safe to repeat.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def join(self, group: str, member: str, wanted: MemberWanted) -> Membership:
        """Join a group, or stay in it; repeat it within a third of the TTL.

        RefusedError with the code `fenced`: another instance has taken over.
        """
        return self._ask(Membership, "PUT", _member(group, member), asdict(wanted))

    def leave(self, group: str, member: str, instance: str | None = None) -> None:
        """Leave a group, so that the nodes get other owners at once."""
        asked = {} if instance is None else {"instance": instance}
        self._transport.request("DELETE", _address(_member(group, member), asked))

    def observed(self, group: str, wanted: ObservedWanted) -> ReporterGroup:
        """Replace the members of a group that the caller observes."""
        body = {**asdict(wanted), "seen_at": wanted.seen_at.isoformat()}
        return self._ask(ReporterGroup, "PUT", f"{_group(group)}/observed", body)

    def group(self, name: str) -> ReporterGroup:
        """Return a group with all its members."""
        return self._ask(ReporterGroup, "GET", _group(name))

    def groups(self) -> Iterator[str]:
        """Yield the names of all groups."""
        for page in self._pages(ReporterGroupPage, "/v1/reporter-groups"):
            yield from page.groups

    def group_delete(self, name: str) -> None:
        """Delete a group that has no live members; its providers stay."""
        self._transport.request("DELETE", _group(name))

    def pins(self, group: str) -> dict[str, str]:
        """Return all pins of a group: the member by node."""
        pages = self._pages(PinPage, f"{_group(group)}/pins")
        return {pin.node: pin.member for page in pages for pin in page.pins}

    def pin(self, group: str, wanted: PinsWanted) -> ReporterGroup:
        """Pin nodes to a member, or remove their pins."""
        return self._ask(ReporterGroup, "POST", f"{_group(group)}/pins", asdict(wanted))

    def nodes(self, group: str) -> Iterator[NodeOwned]:
        """Yield the providers that the reports of a group own, and its ghosts."""
        for page in self._pages(NodePage, f"{_group(group)}/nodes"):
            yield from page.nodes

    def ghosts(self, group: str) -> Iterator[str]:
        """Yield the providers that are gone by a report, but are still allocated."""
        for page in self._pages(GhostPage, f"{_group(group)}/ghosts"):
            yield from page.ghosts

    def report(self, wanted: ReportWanted) -> NodeOutcomes:
        """Report nodes, some at a time; return all outcomes.

        RefusedError with the code `fenced`: another instance has taken over; what was sent before
        is done.
        """
        parts = [
            self._ask(NodeOutcomes, "POST", "/v1/reports", asdict(replace(wanted, nodes=nodes)))
            for nodes in _chunks(wanted.nodes)
        ]
        return _joined(parts)

    def _pages(self, kind: type[T], path: str) -> Iterator[T]:
        cursor: str | None = None
        while True:
            asked = {"limit": str(PAGE_MAX)} | ({} if cursor is None else {"cursor": cursor})
            page: Any = self._ask(kind, "GET", _address(path, asked))
            yield page
            if (cursor := page.next) is None:
                return

    def _ask(self, kind: type[T], method: str, path: str, body: Any = None) -> T:
        return decode(kind, self._transport.request(method, path, body))


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


def _group(name: str) -> str:
    return f"/v1/reporter-groups/{quote(name, safe='')}"


def _member(group: str, member: str) -> str:
    return f"{_group(group)}/members/{quote(member, safe='')}"


def _address(path: str, asked: dict[str, str]) -> str:
    return f"{path}?{urlencode(asked)}" if asked else path
