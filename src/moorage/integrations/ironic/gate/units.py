"""Gets a host its unit while a client waits: shares, asks, and returns unused units."""

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from moorage.client.decoding import UndecodableError
from moorage.client.transport import RefusedError, UnreachableError
from moorage.integrations.clock import monotonic
from moorage.integrations.ironic.clients import ClientPolicy
from moorage.integrations.ironic.gate.metrics import GateMetrics
from moorage.integrations.ironic.gate.watch import Watch
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.provisioning.host_leases import HostLeases, OtherUnitsError
from moorage.integrations.provisioning.hosts import Host
from moorage.wire.admission import Lease

WAITED_MIN = 0.05
"""Ask Moorage to wait at least this long: a free unit must be granted within the request."""

WAITED_MAX = 55.0
"""Ask again after this time: Moorage waits at most 60 seconds for a grant."""

HELD_MAX = 1_000
"""Requests that wait at the same time; others are asked for, but not held. Each has a connection to
Moorage, of which the steps of all hosts need some, too."""

HELD_PER_HOST = 8
"""Requests for one host that wait at the same time: they share a ticket."""

LOOKS = (0.0, 0.5, 2.0)
"""When to look whether a client that has left was granted a unit: Moorage may be just doing it."""

log = logging.getLogger("moorage.gate")


class HeldBackError(Exception):
    """The request cannot be forwarded yet; the message says why.

    `waits`: it has a place in line, and `latest` is the latest estimate of its turn in seconds;
    None: there is none.
    """

    def __init__(self, reason: str, latest: float | None = None, *, waits: bool = False) -> None:
        super().__init__(reason)
        self.latest = latest
        self.waits = waits


@dataclass(frozen=True)
class Want:
    """The units that a host needs for a verb. `force`: at once, over the limit if necessary.

    `expected`: how long the operator expects the work to last, in seconds; None: it is not said.
    """

    host: Host
    name: str
    verb: str
    units: Mapping[str, int]
    force: bool
    expected: float | None = None


class WaitingError(Exception):
    """The host has a ticket, and not yet its units."""

    def __init__(self, want: Want, ticket: Lease) -> None:
        super().__init__("it waits for its turn")
        self.want = want
        self.ticket = ticket


class Units:
    """Units of hosts, for requests that wait."""

    def __init__(
        self, api: LeaseApi, host_leases: HostLeases, watch: Watch, meters: GateMetrics
    ) -> None:
        self._api = api
        self._host_leases = host_leases
        self._watch = watch
        self._meters = meters
        self._asking: Counter[str] = Counter()
        self._held: Counter[str] = Counter()
        """Requests that wait, by the beginning of the keys of their host."""
        self._calls: set[asyncio.Task[Lease]] = set()
        self._cleaning: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Refuse all requests that wait, and all new ones that would."""
        self._stopping.set()
        for call in self._calls:
            call.cancel()

    async def settled(self) -> None:
        """Return when everything that nobody uses has been given back."""
        await asyncio.gather(*self._cleaning, return_exceptions=True)

    async def get(self, want: Want, policy: ClientPolicy, until: float) -> Lease:
        """Return a lease with the units; wait for them until a monotonic time.

        Cancelled: the client has left; its unit is free again.

        Raises WaitingError, HeldBackError, UnreachableError, RefusedError.
        """
        lease = await self._host_leases.current(want.host, want.units, forced=want.force)
        if lease is not None:
            return lease
        with self._holding(want), self._meters.held.track_inprogress(), self._meters.waits.time():
            if self._held.total() > HELD_MAX:
                until = monotonic()
            if not want.force:
                await self._seen_all(until)
                self._counted(want)
            if self._stopping.is_set():
                raise HeldBackError("the gate is being restarted")
            try:
                lease = await self._asked(want, policy, until)
                while lease.state == "waiting" and until - monotonic() > WAITED_MIN:
                    lease = await self._asked(want, policy, until)
            except OtherUnitsError as error:
                raise HeldBackError(f"node {want.name}: {error}") from None
        if lease.state != "granted":
            raise WaitingError(want, lease)
        if not (want.force or lease.record_version):
            try:
                self._counted(want)
            except HeldBackError:
                await self._host_leases.give_back(lease, requeue=True)
                raise
        return lease

    @contextmanager
    def _holding(self, want: Want) -> Iterator[None]:
        """Count a request that waits. Raises HeldBackError: too many wait for its host."""
        keys = want.host.keys
        if self._held[keys] >= HELD_PER_HOST:
            raise HeldBackError(
                f"too many requests for node {want.name} are waiting; ask again later"
            )
        self._held[keys] += 1
        try:
            yield
        finally:
            self._held[keys] -= 1
            if not self._held[keys]:
                del self._held[keys]

    def _counted(self, want: Want) -> None:
        """Raise HeldBackError while nodes work in these pools that Moorage refuses to count."""
        if uncounted := self._watch.picture.blocked(want.host.uuid, want.units):
            raise HeldBackError(f"some busy nodes cannot be counted in {' and '.join(uncounted)}")

    async def _seen_all(self, until: float) -> None:
        """Wait for the first pass: before it, what is busy does not count yet."""
        waiting = [asyncio.ensure_future(one.wait()) for one in (self._watch.ready, self._stopping)]
        try:
            await asyncio.wait(
                waiting,
                timeout=max(0.0, until - monotonic()),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for one in waiting:
                one.cancel()
        if not self._watch.ready.is_set():
            raise HeldBackError(f"the gate grants nothing: {self._watch.trouble}")

    async def _asked(self, want: Want, policy: ClientPolicy, until: float) -> Lease:
        key = want.host.keys + want.verb
        wait = min(WAITED_MAX, max(WAITED_MIN, until - monotonic()))
        call = asyncio.create_task(
            self._host_leases.ask(
                want.host,
                want.verb,
                want.units,
                wait=0.0 if want.force else wait,
                patience=policy.patience,
                force=want.force,
            )
        )
        self._calls.add(call)
        call.add_done_callback(_looked_at)
        self._asking[key] += 1
        try:
            await asyncio.wait({call})
        except asyncio.CancelledError:
            call.cancel()
            self._later(self._give_back(want.host, key))
            raise
        finally:
            self._calls.discard(call)
            self._asking[key] -= 1
            if not self._asking[key]:
                del self._asking[key]
        if call.cancelled():
            raise HeldBackError("the gate is being restarted")
        return call.result()

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._cleaning.add(task)
        task.add_done_callback(self._cleaning.discard)

    async def _give_back(self, host: Host, key: str) -> None:
        """Release the unit that was granted just when its client left, unless others wait for it.

        A gate that is killed here loses nothing: a pass releases what is not used for 10 seconds.
        """
        try:
            for seconds in LOOKS:
                await asyncio.sleep(seconds)
                if self._asking[key]:
                    return
                async for lease in self._api.leases(state="granted", key_prefix=host.keys):
                    if lease.key == key and not lease.record_version and not self._asking[key]:
                        await self._api.release(lease.id, 0)
                        return
        except (UnreachableError, UndecodableError, RefusedError) as error:
            log.debug("cannot release the unit of node %s: %s", host.uuid, error)
        finally:
            if not self._asking[key]:
                self._asking.pop(key, None)


def _looked_at(call: asyncio.Task[Lease]) -> None:
    """Look at an error that nobody waits for any more, so that asyncio does not log it."""
    if not call.cancelled():
        call.exception()
