"""Events about hosts: what `kubectl describe` and `kubectl get events` show of their waiting.

The name of an event follows from the host, its state and what that state comes from, such as a
ticket. So each is created once, also by two processes and after a restart: the second one is
refused, because it is there.
"""

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from moorage.client.run.printing import printable
from moorage.integrations.clock import monotonic
from moorage.integrations.kubernetes.api import KubernetesError
from moorage.integrations.metal3.failures import error_kind_of, error_of, error_text, errors_of
from moorage.integrations.metal3.hosts import OWN, BareMetalHost, pause_of, uid_of, work_of
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.provisioning.hosts import ADOPTED
from moorage.integrations.provisioning.notes import in_line
from moorage.integrations.provisioning.work_steps import work_state_of
from moorage.wire.admission import Lease, NeedWanted

RECENT = timedelta(minutes=10)
"""A start that is older gets no event any more: a process that was restarted would repeat it."""

EVENTS_MAX = 50
"""Events in one pass; the others follow in the next ones."""

POSTING_MAX = 8
"""Events that are created at the same time."""

CREATE_SECONDS = 1.0
"""How long to wait until one event is created: a webhook may not answer in its namespace."""

REST_SECONDS = 60.0
"""How long a host gets no event after one that failed, nor another one of the same state."""

MESSAGE_LENGTH_MAX = 1_000
"""Characters of a message; Kubernetes takes 1,024."""

NAME_LENGTH_MAX = 200
"""Characters of the host's name in that of the event, which may have 253."""

SETTLE_SECONDS = 5.0
"""How long no event is created after the server has denied a right that it may not know yet."""

NO_RIGHT = "cannot create resource"
"""Kubernetes' words if a right is missing. Other writes are forbidden, too, such as those to a
namespace that is being deleted."""

log = logging.getLogger("moorage.metal3")


class State(Enum):
    """The texts of events about a host, the most important ones first."""

    UNCOUNTED = "Uncounted"
    """It works, and Moorage refuses to count it."""
    NOT_STARTED = "NotStarted"
    """It cannot be started now, or cannot wait in line."""
    FAILED = "Failed"
    """Its work has failed, and it keeps its units for some time."""
    STARTED = "Started"
    """It has its units."""
    WAITING = "Waiting"
    """It waits in line."""


RANKS = {state: rank for rank, state in enumerate(State)}
NORMAL = (State.STARTED, State.WAITING)
"""All other states are warnings."""


@dataclass(frozen=True)
class Event:
    """That a host has come into a state.

    `cause` tells it from the other times that the host was in this state; `at` is when.
    """

    host: BareMetalHost
    state: State
    cause: str
    message: str
    at: datetime

    @property
    def name(self) -> str:
        """Its name, by which it is created only once."""
        identity = "\n".join((uid_of(self.host), self.state.value, self.cause))
        digest = sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return f"{self.host['metadata']['name'][:NAME_LENGTH_MAX].rstrip('-.')}.{digest}"

    def object(self) -> dict[str, Any]:
        """Return the event as Kubernetes has it."""
        metadata = self.host["metadata"]
        namespace = metadata.get("namespace", "default")
        at = self.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": "metal3.io/v1alpha1",
                "kind": "BareMetalHost",
                "namespace": namespace,
                "name": metadata["name"],
                "uid": uid_of(self.host),
            },
            "type": "Normal" if self.state in NORMAL else "Warning",
            "reason": self.state.value,
            "message": printable(self.message)[:MESSAGE_LENGTH_MAX],
            "source": {"component": "moorage"},
            "reportingComponent": "moorage.dev/governor",
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }


def events_of(
    hosts: Mapping[str, BareMetalHost],
    tickets: Mapping[str, Collection[Lease]],
    leases: Mapping[str, Collection[Lease]],
    remarks: Mapping[str, str],
    refused: Mapping[str, str],
    now: datetime,
) -> Iterator[tuple[str, Event]]:
    """Yield the event that each host is to have, with its UID; see `Explainer.explain`."""
    for uid, host in hosts.items():
        if (why := refused.get(uid)) is not None:
            text = f"The host is busy, but cannot be counted: {why}"
            yield uid, Event(host, State.UNCOUNTED, why, text, now)
        elif pause_of(host) != OWN and leases.get(uid) and work_of(host) and error_of(host):
            yield uid, _failed(host, now)
        elif pause_of(host) != OWN:
            if (started := _last_start(leases.get(uid, ()), now)) is not None:
                yield uid, _started(host, started)
        elif (ticket := in_line(tickets.get(uid, ()))) is not None:
            yield uid, _waits(host, ticket)
        elif (why := remarks.get(uid)) is not None:
            yield uid, Event(host, State.NOT_STARTED, why, f"The host does not start: {why}", now)


def _last_start(leases: Collection[Lease], now: datetime) -> Lease | None:
    """Return the lease with which a host was started a short time ago; None: there is none."""
    found = [
        lease
        for lease in leases
        if not lease.key.endswith(f"/{ADOPTED}")
        and work_state_of(lease).begun
        and lease.granted_at is not None
        and now - lease.granted_at < RECENT
    ]
    return max(found, key=lambda one: one.granted_at or one.asked_at, default=None)


def _started(host: BareMetalHost, lease: Lease) -> Event:
    at = lease.granted_at or lease.asked_at
    waited = round((at - lease.asked_at).total_seconds())
    verb = lease.key.rpartition("/")[2]
    text = f"{_units_text(lease.needs)} granted after {waited} s: the host starts to {verb}"
    return Event(host, State.STARTED, lease.id, text, at)


def _failed(host: BareMetalHost, now: datetime) -> Event:
    cause = f"{error_kind_of(host)} {errors_of(host)}"
    text = f"The host has failed, and releases its units soon: {error_text(host)}: {error_of(host)}"
    return Event(host, State.FAILED, cause, text, now)


def _waits(host: BareMetalHost, ticket: Lease) -> Event:
    assert ticket.waiting is not None
    eta = ticket.waiting.eta_seconds
    expected = "" if eta is None else ", expected in {:.0f} to {:.0f} s".format(*eta)
    pools = " and ".join(need.pool for need in ticket.needs)
    text = f"Place {ticket.waiting.position} in line of {pools}{expected}: {ticket.waiting.reason}"
    return Event(host, State.WAITING, ticket.id, text, ticket.asked_at)


def _units_text(needs: Sequence[NeedWanted]) -> str:
    return " and ".join(
        f"{need.units} {'unit' if need.units == 1 else 'units'} of {need.pool}" for need in needs
    )


@dataclass(frozen=True)
class _Posted:
    """The last event of a host: `until` it gets no other one of its state, or none if it failed."""

    name: str
    state: State | None
    until: float


class Events:
    """Creates the events of one cluster's hosts. Nothing depends on them: failures are logged."""

    def __init__(self, requests: HostRequests) -> None:
        """Prepare to create events."""
        self._requests = requests
        self._posted: dict[str, _Posted] = {}
        """By UID."""
        self._rests_until = 0.0
        self._warned = False

    async def post(self, hosts: Mapping[str, BareMetalHost], wanted: Mapping[str, Event]) -> None:
        """Create what was not created yet; `wanted` is by UID, as `hosts` are."""
        clock = monotonic()
        for uid in self._posted.keys() - hosts.keys():
            del self._posted[uid]
        if clock < self._rests_until:
            return
        due = [(uid, event) for uid, event in wanted.items() if self._is_due(uid, event, clock)]
        due.sort(key=lambda one: RANKS[one[1].state])
        gate = asyncio.Semaphore(POSTING_MAX)

        async def create(uid: str, event: Event) -> None:
            async with gate:
                if clock >= self._rests_until:
                    await self._create(uid, event, clock)

        await asyncio.gather(*(create(uid, event) for uid, event in due[:EVENTS_MAX]))

    def _is_due(self, uid: str, event: Event, clock: float) -> bool:
        last = self._posted.get(uid)
        if last is None:
            return True
        rests = clock < last.until and last.state in (None, event.state)
        return last.name != event.name and not rests

    async def _create(self, uid: str, event: Event, clock: float) -> None:
        until = clock + REST_SECONDS
        try:
            async with asyncio.timeout(CREATE_SECONDS):
                await self._requests.create_event(event.object())
        except TimeoutError:
            log.debug("the event about host %s is not created within %g s", uid, CREATE_SECONDS)
            self._posted[uid] = _Posted("", None, until)
            return
        except KubernetesError as error:
            if error.may_pass:
                self._rests_until = clock + SETTLE_SECONDS
                return
            if error.status == HTTPStatus.FORBIDDEN and NO_RIGHT in str(error):
                self._forbidden(error, until)
                return
            if error.status != HTTPStatus.CONFLICT:
                log.debug("cannot create the event about host %s: %s", uid, error)
                self._posted[uid] = _Posted("", None, until)
                return
        self._posted[uid] = _Posted(event.name, event.state, until)

    def _forbidden(self, error: KubernetesError, until: float) -> None:
        """Say once which right is missing; try again later."""
        self._rests_until = until
        if not self._warned:
            log.warning(
                "hosts get no events, because the governor may not create them. Its role needs"
                ' apiGroups [""], resources ["events"], verbs ["create"]: %s',
                error,
            )
        self._warned = True
