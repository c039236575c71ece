"""The governor: one pass after the other, each from what Kubernetes and Moorage say now.

A pass adopts what works and releases what is over; then it asks for the hosts with our pause that
have something to start. A granted host loses our pause; the pauses of others stay.
"""

import logging

from moorage.integrations.metal3.explain import Explainer
from moorage.integrations.metal3.hosts import OWN, BareMetalHost, pause_of, start_of, work_of
from moorage.integrations.metal3.metrics import GovernorMetrics
from moorage.integrations.metal3.reconcile import SYSTEM, Picture, Reconciler, host_of_object
from moorage.integrations.metal3.requests import HostRequests, body_of
from moorage.integrations.metal3.rules import Rules
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.line import Line
from moorage.integrations.provisioning.starting import HostStarter
from moorage.integrations.provisioning.starts import PASS_ERRORS, Start

log = logging.getLogger("moorage.metal3")


class Governor:
    """Governs the BareMetalHosts of one cluster."""

    def __init__(self, host_leases: HostLeases, requests: HostRequests, rules: Rules) -> None:
        """Prepare to govern."""
        self._host_leases = host_leases
        self._requests = requests
        self._rules = rules
        self._reconciler = Reconciler(host_leases, requests, rules)
        starter = HostStarter(host_leases, requests, self._start_of)
        self._line = Line(host_leases, starter, self._reconciler.governs)
        self._explainer = Explainer(requests)
        self._trouble: str | None = None
        self.metrics = GovernorMetrics()

    @property
    def picture(self) -> Picture:
        """What the last pass that succeeded has seen."""
        return self.metrics.picture

    async def tick(self) -> bool:
        """Make one pass; return whether it succeeded. It says when it begins and ends to fail."""
        try:
            await self._pass()
        except PASS_ERRORS as error:
            self._line.pause()
            self.metrics.failed(str(error))
            if self._trouble is None:
                log.warning("nothing is started or released: %s", error)
            self._trouble = str(error)
            return False
        if self._trouble is not None:
            log.warning("works again")
        self._trouble = None
        return True

    async def close(self) -> None:
        """Wait for nothing more; return when requests that are being sent are answered."""
        await self._line.close()

    async def _pass(self) -> None:
        picture = await self._reconciler.run_once()
        tickets = await self._host_leases.in_line(SYSTEM)
        starts, blocked = [], {}
        for uid, host in picture.hosts.items():
            if pause_of(host) != OWN:
                continue
            start = self._start_of(host)
            if start is None:
                await self._let_go(picture, uid, host)
            elif pools := picture.uncounted.intersection(start.needs):
                blocked[uid] = f"hosts work that cannot be counted in {', '.join(sorted(pools))}"
            elif not start.must_wait(picture.leases.get(uid, ())):
                starts.append(start)
        await self._line.follow(starts, tickets)
        self.metrics.passed(picture)
        self.metrics.waits(tickets)
        remarks = {**self._line.remarks, **blocked}
        await self._explainer.explain(
            picture.hosts, tickets, picture.leases, remarks, picture.refused
        )

    async def _let_go(self, picture: Picture, uid: str, host: BareMetalHost) -> None:
        """Remove our pause from a host that has nothing to start; if it works, once it counts."""
        if work_of(host) is None or uid in picture.leases:
            await self._requests.unpause(host)

    def _start_of(self, host: BareMetalHost) -> Start | None:
        verb = start_of(host) if pause_of(host) == OWN else None
        if verb is None:
            return None
        needs = self._rules.needs(host, verb)
        return Start(
            host=host_of_object(host, verb),
            verb=verb,
            needs=needs.units,
            body=body_of(host),
            forced=needs.exempt,
        )
