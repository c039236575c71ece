"""Starts work on hosts that have their units, in the same steps for hosts of any system."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar
from uuid import uuid4

from moorage.integrations.provisioning.host_leases import EndedError, HostLeases, TakenError
from moorage.integrations.provisioning.request_steps import Answered, Request, send_with_steps
from moorage.integrations.provisioning.start import NOT_SENT, Start, StartResult
from moorage.integrations.provisioning.unit_release import RequestOutcome
from moorage.wire.admission import Lease

H = TypeVar("H")

TOO_LATE = StartResult(RequestOutcome.REFUSED, "storing the request has taken too long", soon=True)
"""It was not sent, and can be sent again soon."""


class Requests(Protocol[H]):
    """The requests to a system of hosts. Every call raises HostSystemError."""

    async def read(self, start: Start) -> H | None:
        """Return the host of a start as it is now; None: there is none."""
        ...

    def works(self, host: H) -> bool:
        """Return whether it works, or may begin to at any moment, so that it needs its unit."""
        ...

    def is_locked(self, host: H) -> bool:
        """Return whether something prevents a start now, but not for long."""
        ...

    async def send(self, start: Start) -> StartResult:
        """Ask the system to start; a lost answer is an answer, too."""
        ...


class HostStarter(Generic[H]):
    """Starts work. Every call raises HostSystemError, UnreachableError and RefusedError."""

    def __init__(
        self,
        host_leases: HostLeases,
        requests: Requests[H],
        wanted: Callable[[H], Start | None],
    ) -> None:
        """Prepare to start.

        Args:
            host_leases: the leases.
            requests: to the system of the hosts.
            wanted: returns what a host, read again, wants to start; None: nothing any more.
        """
        self._host_leases = host_leases
        self._requests = requests
        self._wanted = wanted

    async def begin(self, start: Start, lease: Lease) -> StartResult:
        """Send the request of a start, unless another process was first or it is out of date.

        The host is read again after its units were granted. Another process may have carried out
        the same start meanwhile, and it has then ended what the start was made from.
        """
        if lease.key != f"{start.host.keys}{start.verb}" or lease.record_version:
            return NOT_SENT
        host = await self._requests.read(start)
        if host is not None and self._requests.works(host) and not start.beside:
            # Another process has started it, so it needs its unit, unless it was counted meanwhile.
            if await self._host_leases.has_other(start.host, lease):
                await self._host_leases.give_back(lease, requeue=False)
            return NOT_SENT
        now = None if host is None else self._wanted(host)
        if now is None or (now.kind, now.verb) != (start.kind, start.verb):
            locked = host is not None and self._requests.is_locked(host)
            await self._host_leases.give_back(lease, requeue=locked)
            return NOT_SENT

        async def send() -> Answered[StartResult]:
            return _answered(await self._requests.send(now))

        request = Request(uuid4().hex, send, lambda: _answered(TOO_LATE))
        try:
            return await send_with_steps(self._host_leases, lease, request, now.marks)
        except (TakenError, EndedError):
            return NOT_SENT

    async def begin_without_units(self, start: Start) -> StartResult:
        """Send the request of a start that is not limited."""
        host = await self._requests.read(start)
        now = None if host is None else self._wanted(host)
        return NOT_SENT if now is None or now.needs else await self._requests.send(now)


def _answered(answer: StartResult) -> Answered[StartResult]:
    assert answer.outcome is not None
    return Answered(answer, answer.outcome, requeue=answer.soon)
