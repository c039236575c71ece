"""Explains to people why hosts wait: by a note on each host, and by events about it."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from moorage.integrations.metal3.events import Events, events_of
from moorage.integrations.metal3.hosts import OWN, BareMetalHost, pause_of
from moorage.integrations.metal3.notes import Notes
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.provisioning.notes import notes_of
from moorage.wire.admission import Lease

EXPLAIN_SECONDS = 5.0
"""How long a pass explains at most: what is left follows in the next ones."""

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
