"""A reporter's place in its group, and which nodes are its own."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

from moorage.client.transport import RefusedError
from moorage.integrations.clock import monotonic
from moorage.integrations.report_api import ReportApi
from moorage.wire.rendezvous import owner
from moorage.wire.reporting import MemberWanted, PassTold

FENCED = "fenced"

LEAVE_SECONDS = 3.0
"""How long a reporter that ends waits for the server: without it the others wait for its TTL."""

SIGNS = 3
"""Signs of life within one TTL."""


class FencedError(Exception):
    """Another instance is the member, or the group was deleted: this one must end."""


@dataclass(frozen=True)
class GroupMember:
    """Which member of which group reports; `ttl` is for how many seconds it may be silent."""

    group: str
    member: str
    ttl: float


@dataclass(frozen=True)
class PassEnded:
    """The last pass, for operators: when it ended, by the monotonic clock, and its nodes."""

    at: float
    nodes: int
    refused: Mapping[str, int] = field(default_factory=dict)

    def now(self) -> PassTold:
        """Return it with its present age."""
        return PassTold(age=monotonic() - self.at, nodes=self.nodes, refused={**self.refused})


class Members:
    """The live members and the pins of a group, as of the last time it was joined."""

    def __init__(self, api: ReportApi, place: GroupMember) -> None:
        self._api = api
        self._wanted = MemberWanted(instance=str(uuid4()), ttl=place.ttl)
        self._pins: dict[str, str] = {}
        self._pins_generation = 0
        self.place = place
        self.token = ""
        self.live: tuple[str, ...] = ()
        self.version = 0
        """It rises when other nodes may have become the reporter's own."""
        self.heard_at = float("-inf")
        """When the last sign of life was sent that was accepted, by the monotonic clock."""
        self.last_pass: PassEnded | None = None
        self._turn = asyncio.Lock()
        self._lost = 0
        """Reports without an answer: each may still arrive, with the token that it has."""
        self._outlived = 0
        """How many of them have a token that is no longer valid."""

    @property
    def due_seconds(self) -> float:
        """How long the next sign of life can wait."""
        return self.heard_at + self.place.ttl / SIGNS - monotonic()

    @property
    def must_renew(self) -> bool:
        """Whether a report may still arrive that is older than the next one: join first."""
        return self._lost != self._outlived

    def lost(self) -> None:
        """Note that a report had no answer, so that it may be carried out later."""
        self._lost += 1

    async def join(self) -> None:
        """Join, or stay. Raises FencedError, and what the API raises.

        What is sent is waited for, also if the caller is cancelled: see `leave`.
        """
        joining = asyncio.create_task(self._join_in_turn())
        # If the caller is cancelled, nobody else looks at an error of the request.
        joining.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(joining)

    async def _join_in_turn(self) -> None:
        async with self._turn:
            await self._join()

    async def _join(self) -> None:
        asked_at, last, lost = monotonic(), self.last_pass, self._lost
        wanted = replace(
            self._wanted,
            last_pass=None if last is None else last.now(),
            renew=lost != self._outlived,
        )
        try:
            found = await self._api.join(self.place.group, self.place.member, wanted)
        except RefusedError as error:
            if error.code == FENCED:
                place = self.place
                raise FencedError(
                    f"this reporter is no longer member {place.member} of group {place.group}, and"
                    f" stops: {error}"
                ) from error
            raise
        # After a restore the same generation may stand for other pins; then the token is another.
        if found.pins_generation != self._pins_generation or found.token != self.token:
            self._pins = await self._api.pins(self.place.group)
            self._pins_generation = found.pins_generation
            self.version += 1
        live, token = tuple(found.members), found.token
        # After a silence longer than its TTL others have had its nodes in between.
        if (live, token) != (self.live, self.token) or asked_at - self.heard_at > self.place.ttl:
            self.version += 1
        self.live, self.token, self.heard_at = live, token, asked_at
        self._outlived = lost

    async def leave(self) -> None:
        """Leave, so that the others get the nodes at once.

        Not while a sign of life is on its way: after the leaving it would be a new member.
        """
        async with self._turn:
            await self._api.leave(self.place.group, self.place.member, self._wanted.instance)

    def is_own(self, node: str) -> bool:
        """Return whether the reporter owns a node."""
        return owner(node, self.live, self._pins.get(node)) == self.place.member

    def observes(self, subject: str) -> bool:
        """Return whether it falls to the reporter to observe something: pins do not count."""
        return owner(subject, self.live) == self.place.member
