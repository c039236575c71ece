"""Work that hosts wait to start, and what came of starting it; whatever system the hosts are of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from moorage.integrations.provisioning.host_leases import Host
from moorage.integrations.provisioning.unit_release import RequestOutcome
from moorage.wire.admission import Lease


class HostSystemError(Exception):
    """The system of the hosts did not answer, or not as it does; the message says what happened."""


@dataclass(frozen=True)
class Start:
    """Work that a host waits to start.

    `needs`: units by pool; empty: it is not limited. `body`: what the request says. `forced`:
    granted over the limit if necessary. `marks`: what the record says before the request is sent.
    """

    host: Host
    verb: str
    needs: Mapping[str, int]
    body: Mapping[str, Any]
    forced: bool = False
    marks: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> tuple[tuple[str, int], ...]:
        """What it needs: of two starts of one kind, the first in line can always be granted."""
        return tuple(sorted(self.needs.items()))


@dataclass(frozen=True)
class StartResult:
    """What came of a start.

    `outcome` None: nothing was sent, because it was not necessary. `text`: why it was refused.
    `soon`: it was refused, but can be sent again soon.
    """

    outcome: RequestOutcome | None
    text: str = ""
    soon: bool = False


NOT_SENT = StartResult(None)


class Starter(Protocol):
    """Starts work. Every call raises HostSystemError, UnreachableError and RefusedError."""

    async def begin(self, start: Start, lease: Lease) -> StartResult:
        """Send the request of a start which has its units, unless it is out of date.

        Raises CrowdedError.
        """
        ...

    async def begin_without_units(self, start: Start) -> StartResult:
        """Send the request of a start that is not limited."""
        ...
