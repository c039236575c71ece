"""The governor: one pass after the other, each from what Kubernetes and Moorage say now.

A pass adopts what works and releases what is over; then it asks for the hosts with our pause that
have something to start. A granted host loses our pause; the pauses of others stay. A host that
could not start gets our pause again, so that it gives its units back, and waits for some time.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, islice

from moorage.integrations.clock import monotonic
from moorage.integrations.metal3.changes import Change, Changes
from moorage.integrations.metal3.explain import Explainer
from moorage.integrations.metal3.failures import (
    WAIT_MAX,
    again_at,
    cannot_start,
    error_kind_of,
    error_of,
    error_text,
    has_looked_since,
    is_marked_as_failed,
    mark_of,
    retry_at,
)
from moorage.integrations.metal3.hosts import (
    OWN,
    BareMetalHost,
    Verb,
    held_verbs_of,
    name_of,
    pause_of,
    retry_of,
    retry_verbs_of,
    start_of,
    uid_of,
    verbs_of,
    work_of,
)
from moorage.integrations.metal3.reconcile import (
    HOSTS,
    SYSTEM,
    Picture,
    Reconciler,
    host_of_object,
    units_for_image,
)
from moorage.integrations.metal3.requests import HostRequests, body_of
from moorage.integrations.metal3.resting import STILL_SECONDS, STUCK_SECONDS, Resting
from moorage.integrations.metal3.rules import Rules
from moorage.integrations.provisioning.deadlock import DURING, Deadlocks
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.host_starter import HostStarter
from moorage.integrations.provisioning.line import Line
from moorage.integrations.provisioning.pass_metrics import GovernorMetrics
from moorage.integrations.provisioning.passes import Passes
from moorage.integrations.provisioning.rules import Needs
from moorage.integrations.provisioning.start import Start
from moorage.wire.admission import Lease

REREAD_MAX = 100
"""Hosts that a pass reads again before it withdraws their tickets; others follow in later ones."""

log = logging.getLogger("moorage.metal3")


def utc_now() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)  # noqa: TID251 - a time for people, and to compare with BMO's


class Governor:
    """Governs the BareMetalHosts of one cluster."""

    def __init__(
        self,
        host_leases: HostLeases,
        requests: HostRequests,
        rules: Rules,
        *,
        now: Callable[[], datetime] = utc_now,
        stuck_seconds: float = STUCK_SECONDS,
        metrics: GovernorMetrics[Picture] | None = None,
    ) -> None:
        """Prepare to govern; `now` returns the time, which is compared with that of BMO's clock."""
        self._host_leases = host_leases
        self._requests = requests
        self._rules = rules
        self._now = now
        self._stuck_seconds = stuck_seconds
        self._resting = Resting(now, stuck_seconds)
        self._reconciler = Reconciler(host_leases, requests, rules, self._resting)
        starter = HostStarter(host_leases, requests, self._start_unless_held)
        self._governs = self._reconciler.governs
        self._line = Line(host_leases, starter, self._governs)
        self._deadlocks = Deadlocks(host_leases)
        self._explainer = Explainer(requests, now)
        self._held: dict[str, str] = {}
        self._waits: dict[str, tuple[datetime, float]] = {}
        """Until when hosts wait that could not start, and since when this process sees it."""
        self._leases: Mapping[str, Collection[Lease]] = {}
        """By which hosts have units, by UID, as the last pass has seen them."""
        self._changes = Changes()
        self.metrics = metrics or GovernorMetrics(HOSTS, Picture())
        self._passes = Passes(self._pass, self._line, log, self.metrics.failed)

    @property
    def picture(self) -> Picture:
        """The observations of the last successful pass."""
        return self.metrics.picture

    @property
    def remarks(self) -> dict[str, str]:
        """Why hosts with our pause do not start, or have no place in line, by UID."""
        return {**self._changes.remarks, **self._line.remarks, **self._held}

    async def tick(self) -> bool:
        """Make one pass; return whether it succeeded. It says when it begins and ends to fail."""
        return await self._passes.tick()

    async def close(self) -> None:
        """Wait for nothing more; return when requests that are being sent are answered."""
        await self._line.close()
        await self._changes.close()

    async def _pass(self) -> None:
        picture = await self._reconciler.run_once()
        await self._requests.holds.look(picture.hosts.values())
        tickets = await self._host_leases.in_line(SYSTEM)
        starts, held, kept = [], {}, set[str]()
        self._leases = picture.leases
        self._changes.forget(picture.hosts)
        self._waits = {uid: wait for uid, wait in self._waits.items() if uid in picture.hosts}
        changes: list[tuple[BareMetalHost, Change]] = []
        for uid, host in picture.hosts.items():
            leases = picture.leases.get(uid, ())
            if self._is_held_back(host, leases):
                changes.append((host, self._hold_back))
            elif self._went_well(host):
                changes.append((host, self._requests.forget_failures))
            if pause_of(host) != OWN:
                continue
            start = self._start_of(host)
            if start is None:
                # If it works, this waits until it is counted, or Moorage has refused to count it.
                if uid in picture.refused or self._is_counted(host, leases):
                    changes.append((host, self._requests.unpause))
            elif (why := self._requests.holds.why(host)) is not None:
                held[uid] = why
                kept.add(uid)
            elif (wait := self._wait_of(host)) is not None:
                held[uid] = wait
            elif pools := picture.blocked(uid, start.needs):
                held[uid] = f"some busy hosts cannot be counted in {', '.join(pools)}"
                kept.add(uid)
            elif (
                uid in picture.adopted  # with leases that this pass has not seen
                or start.must_wait(leases)
                or not self._is_counted(host, leases)
            ):
                kept.add(uid)
            else:
                starts.append(start)
        await self._changes.make(changes)
        self._held = held
        seen = {start.host.uuid for start in starts} | held.keys() | kept
        kept |= await self._still_waiting(
            {
                uid: ticket
                for uid, waiting in tickets.items()
                for ticket in waiting
                if uid not in seen and self._governs(ticket)
            },
            picture.hosts,
        )
        leases = [*chain.from_iterable(picture.leases.values()), *picture.foreign]
        starts = await self._deadlocks.broken(starts, tickets, leases)
        await self._line.follow(starts, tickets, kept)
        self.metrics.passed(picture)
        self.metrics.waits(tickets)
        await self._explainer.explain(
            picture.hosts, tickets, picture.leases, self.remarks, picture.refused
        )

    async def _still_waiting(
        self, tickets: Mapping[str, Lease], hosts: Mapping[str, BareMetalHost]
    ) -> set[str]:
        """Return which hosts with tickets wait, although this pass did not see it; all by UID.

        Another process may have seen a host later than the copy of this one shows it: without the
        ticket, the host would lose its place.
        """
        waiting = {*islice(tickets, REREAD_MAX, None)}
        for uid in islice(tickets, REREAD_MAX):
            host = await self._reconciler.read(tickets[uid], hosts.get(uid))
            if host is not None and self._start_of(host) is not None:
                waiting.add(uid)
        return waiting

    def _went_well(self, host: BareMetalHost) -> bool:
        """Return whether a host that has failed before has nothing left to do, and no error."""
        idle = pause_of(host) is None and work_of(host) is None and start_of(host) is None
        return idle and is_marked_as_failed(host) and not error_kind_of(host)

    def _is_held_back(self, host: BareMetalHost, leases: Collection[Lease]) -> bool:
        """Return whether a host has failed and only looks again later: it needs no units."""
        if pause_of(host) is not None or not (leases or self._resting.rests(host)):
            return False
        if work_of(host) is None:
            seconds, fails = self._stuck_seconds, cannot_start(host)
        else:
            seconds = STILL_SECONDS
            fails = retry_of(host) is not None and self._resting.rests(host)
        stuck = all(
            lease.record_version
            and (lease.record_age or 0.0) >= seconds
            and has_looked_since(host, lease.record)
            for lease in leases
        )
        return fails and stuck and self._resting.may_be_paused(host)

    async def _hold_back(self, host: BareMetalHost) -> bool:
        """Store our pause in a host, so that its units are released; return whether it was stored.

        If BMO has begun meanwhile, the version of the host is another one, and nothing is stored.
        """
        if not await self._requests.pause(host):
            return False
        log.warning(
            "%s has failed, and releases its units until its next try: %s: %s",
            name_of(host),
            error_text(host),
            error_of(host),
        )
        return True

    def _wait_of(self, host: BareMetalHost) -> str | None:
        """Return why a host does not ask yet that could not start; None: it may ask."""
        again = again_at(host) or retry_at(host)
        if again is None or again <= self._now():
            return None
        # By the clock of this process alone, too: that of BMO may be wrong.
        before, since = self._waits.get(uid_of(host), (None, 0.0))
        if before != again:
            since = monotonic()
            self._waits[uid_of(host)] = again, since
        if monotonic() - since >= WAIT_MAX.total_seconds():
            return None
        return (
            f"it has failed: {error_text(host)}: {error_of(host)};"
            f" it has no units, and waits in line again from {again:%F %T %Z}"
        )

    def _is_counted(self, host: BareMetalHost, leases: Collection[Lease]) -> bool:
        """Return whether a host has its units for what it does, if it does anything."""
        work = work_of(host)
        if work is None or leases or self._resting.rests(host):
            return True
        return not self._rules.needs_for(host, {work}).units

    def _start_unless_held(self, host: BareMetalHost) -> Start | None:
        return None if self._requests.holds.why(host) is not None else self._start_of(host)

    def _start_of(self, host: BareMetalHost) -> Start | None:
        if pause_of(host) != OWN:
            return None
        if (verb := start_of(host)) is not None:
            return self._start(host, verb, self._rules.needs(host, verb))
        if self._resting.rests(host):
            if (again := retry_of(host)) is None:
                return None
            needs = self._rules.needs_for(host, retry_verbs_of(host, again))
            return self._start(host, again, needs)
        if not held_verbs_of(host):
            return None
        # It works, and would go on to its image.
        needs = self._rules.needs(host, Verb.PROVISION)
        found = self._leases.get(uid_of(host), ())
        leases = [one for one in found if not _is_unsent(one)]
        lacks = units_for_image(self._rules, host, leases)
        if not lacks:
            return None
        return self._start(
            host,
            Verb.PROVISION,
            Needs(units=lacks, exempt=needs.exempt or any(map(_is_over_limit, found))),
            beside=bool(leases),
        )

    def _start(
        self, host: BareMetalHost, verb: Verb, needs: Needs, *, beside: bool = False
    ) -> Start:
        holder = host_of_object(host, verb, verbs_of(host, verb))
        if beside:
            holder = replace(holder, labels={**holder.labels, DURING: str(work_of(host))})
        return Start(
            host=holder,
            verb=verb,
            needs=needs.units,
            body=body_of(host),
            forced=needs.exempt,
            marks=mark_of(host),
            beside=beside,
        )


def _is_unsent(lease: Lease) -> bool:
    """Return whether a lease was granted for an image, and the pause is about to be removed."""
    return lease.key.endswith(f"/{Verb.PROVISION}") and not lease.record_version


def _is_over_limit(lease: Lease) -> bool:
    """Return whether a lease for an image was forced, and the pause is about to be removed."""
    return lease.forced and _is_unsent(lease)
