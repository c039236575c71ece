"""Events about hosts: what `kubectl describe` and `kubectl get events` show of their waiting.

The name of an event follows from the host, its state and what that state comes from, such as a
ticket. So each is created once, also by two processes and after a restart: the second one is
refused, because it is there.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from moorage.client.run.printing import printable
from moorage.integrations.clock import monotonic
from moorage.integrations.kubernetes.api import KubernetesError
from moorage.integrations.metal3.hosts import BareMetalHost, uid_of
from moorage.integrations.metal3.requests import HostRequests

EVENTS_MAX = 50
"""Events in one pass; the others follow in the next ones."""

POSTING_MAX = 8
"""Events that are created at the same time."""

REST_SECONDS = 60.0
"""How long a host gets no event after one that failed, nor another one of the same state."""

MESSAGE_LENGTH_MAX = 1_000
"""Characters of a message; Kubernetes takes 1,024."""

NAME_LENGTH_MAX = 200
"""Characters of the host's name in that of the event, which may have 253."""

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
        self._forbidden_until = 0.0
        self._warned = False

    async def post(self, hosts: Mapping[str, BareMetalHost], wanted: Mapping[str, Event]) -> None:
        """Create what was not created yet; `wanted` is by UID, as `hosts` are."""
        clock = monotonic()
        for uid in self._posted.keys() - hosts.keys():
            del self._posted[uid]
        if clock < self._forbidden_until:
            return
        due = [(uid, event) for uid, event in wanted.items() if self._is_due(uid, event, clock)]
        due.sort(key=lambda one: RANKS[one[1].state])
        gate = asyncio.Semaphore(POSTING_MAX)

        async def create(uid: str, event: Event) -> None:
            async with gate:
                if clock >= self._forbidden_until:
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
            await self._requests.create_event(event.object())
        except KubernetesError as error:
            if error.status == HTTPStatus.FORBIDDEN and NO_RIGHT in str(error):
                self._forbidden(error, until)
                return
            if error.status != HTTPStatus.CONFLICT:
                log.debug("no event about host %s: %s", uid, error)
                self._posted[uid] = _Posted("", None, until)
                return
        self._posted[uid] = _Posted(event.name, event.state, until)

    def _forbidden(self, error: KubernetesError, until: float) -> None:
        """Say once which right is missing; try again later."""
        self._forbidden_until = until
        if not self._warned:
            log.warning(
                "hosts get no events, because the governor may not create them. Its role needs"
                ' apiGroups [""], resources ["events"], verbs ["create"]: %s',
                error,
            )
        self._warned = True
