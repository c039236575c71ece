"""Explains to people why hosts wait: by a note on each host, and by events about it."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from moorage.integrations.metal3.events import Event, Events, State
from moorage.integrations.metal3.failures import (
    error_kind_of,
    error_of,
    error_text,
    errors_of,
)
from moorage.integrations.metal3.hosts import OWN, BareMetalHost, pause_of, work_of
from moorage.integrations.metal3.notes import Notes
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.provisioning.hosts import ADOPTED
from moorage.integrations.provisioning.notes import in_line, notes_of
from moorage.integrations.provisioning.work_steps import work_state_of
from moorage.wire.admission import Lease, NeedWanted

EXPLAIN_SECONDS = 5.0
"""How long a pass explains at most: what is left follows in the next ones."""

RECENT = timedelta(minutes=10)
"""A start that is older gets no event any more: a process that was restarted would repeat it."""

log = logging.getLogger("moorage.metal3")


class Explainer:
    """Explains what one governor does. Nothing depends on it: it never fails."""

    def __init__(self, requests: HostRequests, now: Callable[[], datetime]) -> None:
        """Prepare to explain; `now` returns the time, for people."""
        self._now = now
        self._notes = Notes(requests)
        self._events = Events(requests)

    async def explain(
        self,
        hosts: Mapping[str, BareMetalHost],
        tickets: Mapping[str, Collection[Lease]],
        leases: Mapping[str, Collection[Lease]],
        remarks: Mapping[str, str],
        refused: Mapping[str, str],
    ) -> None:
        """Say on hosts and in events what a pass has seen; everything is by UID.

        Args:
            hosts: all hosts.
            tickets: those that wait.
            leases: those by which hosts have units.
            remarks: why hosts cannot be started or cannot wait.
            refused: why hosts that work could not be counted.
        """
        waiting = {uid for uid, host in hosts.items() if pause_of(host) == OWN}
        notes = notes_of(tickets, remarks, busy=hosts.keys() - waiting)
        now = self._now()
        events = dict(events_of(hosts, tickets, leases, remarks, refused, now))
        try:
            async with asyncio.timeout(EXPLAIN_SECONDS):
                shown = {uid: note for uid, note in notes.items() if uid in waiting}
                await self._notes.write(hosts, shown, now)
                await self._events.post(hosts, events)
        except TimeoutError:
            log.debug("not all notes and events were written in time")


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
            text = f"It works, and cannot be counted: {why}"
            yield uid, Event(host, State.UNCOUNTED, why, text, now)
        elif pause_of(host) != OWN and leases.get(uid) and work_of(host) and error_of(host):
            yield uid, _failed(host, now)
        elif pause_of(host) != OWN:
            if (started := _last_start(leases.get(uid, ()), now)) is not None:
                yield uid, _started(host, started)
        elif (ticket := in_line(tickets.get(uid, ()))) is not None:
            yield uid, _waits(host, ticket)
        elif (why := remarks.get(uid)) is not None:
            yield uid, Event(host, State.NOT_STARTED, why, f"It does not start: {why}", now)


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
    text = f"{_units_text(lease.needs)} granted after {waited} s: it starts to {verb}"
    return Event(host, State.STARTED, lease.id, text, at)


def _failed(host: BareMetalHost, now: datetime) -> Event:
    cause = f"{error_kind_of(host)} {errors_of(host)}"
    text = f"It has failed, and gives its units back soon: {error_text(host)}: {error_of(host)}"
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
