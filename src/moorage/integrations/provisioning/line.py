"""The hosts that wait for units: each has a ticket, and the first ones have a request that waits.

Tickets are pull tickets: they are granted only while a request waits for them. A unit must not stay
free while a host waits that could use it. So requests are held open for the first hosts of each
*kind*, that is, of each set of needs: if any host of a kind can be granted, so can the first one in
line. When a request is answered, the next host of the kind takes its place at once; of units that
become free together each costs one round trip divided by `HELD_PER_KIND`. All other hosts have a
place in line, which they keep for `PATIENCE_SECONDS` after they have asked, and ask again long
before. Kinds above `HELD_MAX` have no open request: their hosts ask at each pass.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from moorage.client.decoding import UndecodableError
from moorage.client.transport import RefusedError, UnreachableError
from moorage.integrations.bounded import run_bounded
from moorage.integrations.clock import monotonic
from moorage.integrations.provisioning.host_leases import HostLeases, OtherUnitsError
from moorage.integrations.provisioning.host_starter import HostStarter
from moorage.integrations.provisioning.start import (
    NOT_SENT,
    HostSystemError,
    Start,
    StartResult,
)
from moorage.integrations.provisioning.unit_release import RequestOutcome
from moorage.integrations.provisioning.work_steps import CrowdedError
from moorage.wire.admission import Lease

WAIT_SECONDS = 20.0
"""How long one request waits for a grant."""

PATIENCE_SECONDS = 1_800.0
"""How long a host keeps its place without asking: as long as Moorage or its system may be away."""

ASK_AGAIN_SECONDS = PATIENCE_SECONDS / 6

HELD_PER_KIND = 32
HELD_MAX = 256

ASKING_MAX = 32
"""Requests that do not wait, at the same time."""

LOCKED_SECONDS = 3.0
"""How long a host rests after it was refused because something works on it."""

REFUSED_SECONDS = 60.0
"""How long a host rests after it was refused for another reason, also by Moorage."""

SENT_SECONDS = 5.0
"""How long a host rests after its request was sent: the next reading shows it."""

WITHDRAWN = "its ticket was withdrawn while it waited, for example by a governor with other rules"
"""Why a host has no place in line for a moment."""

log = logging.getLogger("moorage.provisioning")


def chosen(starts: Iterable[Start]) -> list[Start]:
    """Return the starts for which requests are held, of starts in the order of the line.

    The first of each kind come first, so that no kind is without a request before any has a second.
    """
    ranks: dict[Any, int] = {}
    ranked = []
    for number, start in enumerate(starts):
        rank = ranks[start.kind] = ranks.get(start.kind, -1) + 1
        if rank < HELD_PER_KIND:
            ranked.append((rank, number, start))
    return [start for _, _, start in sorted(ranked, key=lambda one: one[:2])[:HELD_MAX]]


class Line:
    """The starts that wait, and those that were granted and are being sent."""

    def __init__(
        self,
        host_leases: HostLeases,
        starter: HostStarter[Any],
        is_own: Callable[[Lease], bool],
        answered: Callable[[Start, StartResult], None] = lambda start, answer: None,
    ) -> None:
        """Prepare to ask.

        Args:
            host_leases: the leases.
            starter: sends what was granted.
            is_own: whether a ticket was made for a start of this line, also by an earlier process.
            answered: is called with each answer.
        """
        self._host_leases = host_leases
        self._starter = starter
        self._is_own = is_own
        self._answered = answered
        self._starts: dict[str, Start] = {}
        """In the order of the line, by UUID."""
        self._held: dict[str, asyncio.Task[None]] = {}
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._asked: dict[str, float] = {}
        """When each host has asked last."""
        self._rests: dict[str, float] = {}
        """Until when each host does not ask."""
        self._answers: set[str] = set()
        """Nodes with an answer since the last `follow`, whose caller may have looked before it."""
        self._open = False
        self.remarks: dict[str, str] = {}
        """Why hosts could not be started, by UUID; until they ask again."""

    async def follow(
        self,
        starts: Collection[Start],
        tickets: Mapping[str, Collection[Lease]],
        kept: Collection[str] = (),
    ) -> None:
        """Wait for these starts and no others.

        Args:
            starts: what can be started now.
            tickets: those that wait, by the UUID of the host.
            kept: hosts that keep their place although they cannot be started now.

        Raises UnreachableError, RefusedError.
        """
        places = {
            uuid: ticket.waiting.position
            for uuid, waiting in tickets.items()
            for ticket in waiting
            if ticket.waiting is not None
        }
        last = len(places) + 1
        wanted = sorted(starts, key=lambda one: places.get(one.host.uuid, last))
        now = {start.host.uuid: start for start in wanted}
        self._let_others_go(now)
        self._starts = now
        await self._withdraw(tickets, kept)
        for memory in (self._rests, self.remarks, self._asked):
            for uuid in memory.keys() - now.keys() - self._answers:
                del memory[uuid]
        self._answers.clear()
        self._open = True
        self._hold()
        await self._ask_others()

    def pause(self) -> None:
        """Wait for nothing until `follow`; what is granted already is sent."""
        self._open = False
        for task in self._held.values():
            task.cancel()

    async def close(self) -> None:
        """Stop waiting; return when the requests that are being sent are answered."""
        self.pause()
        held = list(self._held.values())
        await asyncio.gather(*held, return_exceptions=True)
        await asyncio.gather(*self._sending.values(), return_exceptions=True)

    @property
    def is_sending(self) -> bool:
        """Whether requests are being sent now."""
        return bool(self._sending)

    def _let_others_go(self, now: Mapping[str, Start]) -> None:
        """End the open requests of starts that are wanted no more, or need something else."""
        for uuid, before in self._starts.items():
            after = now.get(uuid)
            if after is not None and after.asks_as(before):
                continue
            if (task := self._held.pop(uuid, None)) is not None:
                task.cancel()

    async def _withdraw(
        self, tickets: Mapping[str, Collection[Lease]], kept: Collection[str]
    ) -> None:
        """Withdraw the tickets of hosts that wait no more."""
        for uuid, waiting in tickets.items():
            if uuid in self._starts or uuid in kept or uuid in self._sending:
                continue
            for ticket in waiting:
                if self._is_own(ticket):
                    await self._host_leases.give_back(ticket, requeue=False)

    def _hold(self) -> None:
        """Hold requests open for the first hosts of each kind."""
        if not self._open:
            return
        clock = monotonic()
        able = (one for one in self._starts.values() if one.needs and self._may_ask(one, clock))
        for start in chosen(able):
            uuid = start.host.uuid
            if uuid not in self._held:
                task = asyncio.create_task(self._until_granted(start))
                self._held[uuid] = task
                task.add_done_callback(partial(self._let_go, uuid))

    def _may_ask(self, start: Start, clock: float) -> bool:
        uuid = start.host.uuid
        return uuid not in self._sending and self._rests.get(uuid, 0.0) <= clock

    def _let_go(self, uuid: str, task: asyncio.Task[None]) -> None:
        if self._held.get(uuid) is task:
            del self._held[uuid]
        if not task.cancelled():
            self._hold()

    async def _until_granted(self, start: Start) -> None:
        while self._open and await self._ask(start, WAIT_SECONDS):
            pass

    async def _ask_others(self) -> None:
        """Ask for the hosts without an open request, at most `ASKING_MAX` at once."""
        clock = monotonic()
        kinds = {self._starts[uuid].kind for uuid in self._held if uuid in self._starts}
        asking = []
        for uuid, start in self._starts.items():
            if uuid in self._held or not self._may_ask(start, clock):
                continue
            stale = clock - self._asked.get(uuid, float("-inf")) >= ASK_AGAIN_SECONDS
            if stale or start.forced or start.kind not in kinds:
                asking.append(partial(self._ask, start, 0.0))
        await run_bounded(ASKING_MAX, asking)

    async def _ask(self, start: Start, wait: float) -> bool:
        """Ask once; return whether to ask again at once."""
        uuid = start.host.uuid
        self._asked[uuid] = monotonic()
        if not start.needs:
            self._send(start, None)
            return False
        try:
            lease = await self._host_leases.ask(
                start.host,
                start.verb,
                start.needs,
                wait=wait,
                patience=PATIENCE_SECONDS,
                force=start.forced,
                beside=start.beside,
            )
        except (UnreachableError, UndecodableError):
            self._open = False
            return False
        except OtherUnitsError as error:
            self._rest(uuid, LOCKED_SECONDS, str(error))
            return False
        except RefusedError as refusal:
            self._rest(uuid, REFUSED_SECONDS, str(refusal))
            return False
        if lease.state == "granted":
            self._send(start, lease)
        elif lease.state == "ended":
            # A process with other rules has withdrawn it: both would do so again at once.
            self._rest(uuid, LOCKED_SECONDS, WITHDRAWN)
        return lease.state == "waiting"

    def _send(self, start: Start, lease: Lease | None) -> None:
        uuid = start.host.uuid
        task = asyncio.create_task(self._begin(start, lease))
        self._sending[uuid] = task
        task.add_done_callback(lambda _: self._sending.pop(uuid, None))

    async def _begin(self, start: Start, lease: Lease | None) -> None:
        try:
            if lease is None:
                answer = await self._starter.begin_without_units(start)
            else:
                answer = await self._starter.begin(start, lease)
        except (
            HostSystemError,
            UnreachableError,
            UndecodableError,
            RefusedError,
            CrowdedError,
        ) as error:
            log.warning("host %s is not started: %s", start.host.uuid, error)
            answer = NOT_SENT
        self._judge(start, answer)
        self._answered(start, answer)

    def _judge(self, start: Start, answer: StartResult) -> None:
        uuid, name = start.host.uuid, start.host.labels.get("holder", start.host.uuid)
        if answer.outcome is RequestOutcome.REFUSED and not answer.soon:
            log.warning("%s: %s was refused: %s", name, start.verb, answer.text)
            self._rest(uuid, REFUSED_SECONDS, f"{start.verb} was refused: {answer.text}")
            return
        if answer.outcome is RequestOutcome.ACCEPTED:
            log.info("%s: %s was started", name, start.verb)
        self._rest(uuid, LOCKED_SECONDS if answer.soon else SENT_SECONDS)

    def _rest(self, uuid: str, seconds: float, remark: str = "") -> None:
        self._answers.add(uuid)
        self._rests[uuid] = monotonic() + seconds
        if remark:
            self.remarks[uuid] = remark
        else:
            self.remarks.pop(uuid, None)
