"""Sends what is known of nodes, some at a time, and says what came of it."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Literal

from moorage.client.decoding import UndecodableError
from moorage.client.transport import RefusedError, UnreachableError
from moorage.integrations.clock import monotonic
from moorage.integrations.ironic.report.membership import FENCED, Members
from moorage.integrations.report_api import ReportApi
from moorage.wire.reporting import NodeOutcome, NodeReported, ReportWanted

Mode = Literal["owner", "beside_nova"]

CHUNK = 1_000
"""Nodes in one request: a takeover is noticed soon."""

CHUNK_NAMES = 20_000
"""Traits in one request: the server refuses a report that has too many, or too many new ones."""

NOT_OWNER = "not_owner"

NAMED_MAX = 10
"""Refused nodes that a pass names in the log."""

log = logging.getLogger("moorage.ironic")


class StaleError(Exception):
    """The reading is too old to be sent: other members may have reported since."""


@dataclass
class Tally:
    """The results of reports: nodes by outcome, and refused ones by code."""

    outcomes: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Add what came of further reports."""
        self.outcomes.update(other.outcomes)
        self.codes.update(other.codes)

    @property
    def nodes(self) -> int:
        """How many nodes were sent."""
        return self.outcomes.total()

    @property
    def refused(self) -> int:
        """How many were refused, except those that another member owns now."""
        return self.codes.total() - self.codes[NOT_OWNER]

    def __str__(self) -> str:
        words = [f"{number} {name}" for name, number in sorted(self.outcomes.items())]
        words += [f"{number} with {code}" for code, number in sorted(self.codes.items())]
        return f"{self.nodes} nodes sent" + (f": {', '.join(words)}" if words else "")


class Sender:
    """Sends reports of one member, one request at a time.

    What is sent for a node is what is known when the request is made, so that what was read earlier
    never follows what was read later.
    """

    def __init__(self, api: ReportApi, members: Members, mode: Mode) -> None:
        self._api = api
        self._members = members
        self._mode = mode
        self._turn = asyncio.Lock()
        self._codes: dict[str, str] = {}
        """Why each node was refused the last time."""
        self.read_at = float("-inf")
        """When the last reading of changes began, by the monotonic clock."""

    async def send(self, uuids: Iterable[str], known: Mapping[str, NodeReported | None]) -> Tally:
        """Report those of some nodes that the member owns.

        A node that is `known` as None has nothing to report.

        Raises StaleError, FencedError, and what the API raises; what was sent before is done.
        """
        tally = Tally()
        own = [uuid for uuid in uuids if known.get(uuid) and self._members.is_own(uuid)]
        left = deque(own)
        while left:
            async with self._turn:
                if nodes := _chunk(left, known):
                    tally.add(self._tallied(await self._report(nodes)))
        return tally

    async def send_absent(
        self, uuids: Sequence[str], gone: Container[str]
    ) -> tuple[Tally, list[str]]:
        """Report that Ironic has no such nodes; return also those that nobody need ask for again.

        Those that are no longer `gone` when a request is made are left out.

        Raises as `send` does.
        """
        tally, done = Tally(), []
        for first in range(0, len(uuids), CHUNK):
            async with self._turn:
                still = [uuid for uuid in uuids[first : first + CHUNK] if uuid in gone]
                nodes = [NodeReported(uuid=uuid, seen="absent") for uuid in still]
                results = await self._report(nodes) if nodes else []
            tally.add(self._tallied(results))
            done += [one.uuid for one in results if one.code is None]
        return tally, done

    async def _report(self, nodes: Sequence[NodeReported]) -> list[NodeOutcome]:
        members = self._members
        if members.must_renew:
            await members.join()
        if monotonic() - self.read_at > members.place.ttl / 2:
            # Another member may have had the nodes since, if this process was stopped for a while.
            raise StaleError("it took too long to send the nodes: they are read again")
        wanted = ReportWanted(
            group=members.place.group,
            member=members.place.member,
            token=members.token,
            mode=self._mode,
            nodes=[*nodes],
        )
        try:
            return (await self._api.report(wanted)).results
        except (UnreachableError, UndecodableError):
            members.lost()
            raise
        except RefusedError as error:
            if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                members.lost()  # somebody in between may have answered
            if error.code != FENCED:
                raise
            # Replaced, which joining finds out; or removed by somebody: then it joins again.
            await members.join()
            raise StaleError("the membership was renewed") from error

    def _tallied(self, results: Sequence[NodeOutcome]) -> Tally:
        tally = Tally(
            Counter(one.outcome for one in results),
            Counter(one.code for one in results if one.code is not None),
        )
        refused = {
            one.uuid: one for one in results if one.code is not None and one.code != NOT_OWNER
        }
        new = [one for uuid, one in refused.items() if self._codes.get(uuid) != one.code]
        for one in new[:NAMED_MAX]:
            log.warning("node %s is refused: %s", one.uuid, one.message)
        if len(new) > NAMED_MAX:
            log.warning("%d more nodes are refused", len(new) - NAMED_MAX)
        for one in results:
            self._codes.pop(one.uuid, None)
        self._codes |= {uuid: str(one.code) for uuid, one in refused.items()}
        return tally

    @property
    def refused(self) -> dict[str, str]:
        """The nodes that were refused the last time, except for those of other members: why."""
        return {**self._codes}


def _chunk(left: deque[str], known: Mapping[str, NodeReported | None]) -> list[NodeReported]:
    """Take the nodes of the next request from those that are left."""
    nodes: list[NodeReported] = []
    names = 0
    while left and len(nodes) < CHUNK and names < CHUNK_NAMES:
        if node := known.get(left.popleft()):
            nodes.append(node)
            names += len(node.traits or ())
    return nodes
