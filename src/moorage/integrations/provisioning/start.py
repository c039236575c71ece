"""Work that hosts wait to start, and what came of starting it; whatever system the hosts are of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.client.decoding import UndecodableError
from moorage.client.transport import RefusedError, UnreachableError
from moorage.integrations.provisioning.hosts import Host
from moorage.integrations.provisioning.unit_release import RequestOutcome
from moorage.integrations.provisioning.work_steps import CrowdedError, EndedError
from moorage.wire.admission import Lease


class HostSystemError(Exception):
    """The system of the hosts did not answer, or not as it does; the message says what happened."""


PASS_ERRORS = (
    HostSystemError,
    UnreachableError,
    UndecodableError,
    RefusedError,
    EndedError,
    CrowdedError,
)
"""Why a pass over all hosts may fail: the next one tries again."""


@dataclass(frozen=True)
class Start:
    """Work that a host waits to start.

    `needs`: units by pool; empty: it is not limited. `body`: what the request says. `forced`:
    granted over the limit if necessary. `marks`: what the record says before the request is sent.
    `beside`: the host works, and keeps its leases; these units are for what follows.
    """

    host: Host
    verb: str
    needs: Mapping[str, int]
    body: Mapping[str, Any]
    forced: bool = False
    marks: Mapping[str, Any] = field(default_factory=dict)
    beside: bool = False

    @property
    def kind(self) -> tuple[tuple[str, int], ...]:
        """The needs: of two starts with equal needs, the first in line can always be granted."""
        return tuple(sorted(self.needs.items()))

    def asks_as(self, other: "Start") -> bool:
        """Return whether a request for another start of its host asks for the same."""
        own, others = ((one.kind, one.verb, one.forced, one.beside) for one in (self, other))
        return own == others

    def must_wait(self, leases: Iterable[Lease]) -> bool:
        """Return whether its host, with these leases, still has a unit of other work.

        That is one for which a request was sent, or one for another verb, unless that goes on.
        """
        key = f"{self.host.keys}{self.verb}"
        if self.beside:
            leases = [lease for lease in leases if lease.key == key]
        return any(lease.record_version or lease.key != key for lease in leases)


@dataclass(frozen=True)
class StartResult:
    """The result of a start.

    `outcome` None: nothing was sent, because it was not necessary. `text`: why it was refused.
    `soon`: it was refused, but can be sent again soon.
    """

    outcome: RequestOutcome | None
    text: str = ""
    soon: bool = False


NOT_SENT = StartResult(None)
