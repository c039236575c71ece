"""How a pass sees BareMetalHosts: which need units, and what becomes of their work."""

import logging
from collections.abc import Collection, Mapping

from moorage.integrations.metal3.failures import error_text, result_of
from moorage.integrations.metal3.hosts import (
    HELD,
    BareMetalHost,
    Verb,
    is_leaving,
    may_work,
    name_of,
    occupies,
    pause_of,
    start_of,
    state_of,
    uid_of,
    verbs_of,
    work_of,
)
from moorage.integrations.metal3.requests import HOST_NAME, HostRequests
from moorage.integrations.metal3.resting import Resting
from moorage.integrations.metal3.rules import Rules, image_of
from moorage.integrations.provisioning import reconcile
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.hosts import (
    ADOPTED,
    LABEL_LENGTH_MAX,
    Host,
    host_of,
    key_part,
    label_text,
)
from moorage.integrations.provisioning.occupation import Occupation, occupation_of
from moorage.integrations.provisioning.pass_metrics import Names
from moorage.integrations.provisioning.reconcile import Busy, Outcome, Words, units_of
from moorage.wire.admission import Lease

THEN = "then"
"""The label of a lease that is also for what the host goes on to: its image."""

ERROR = "error"
"""The label that says which error a host had when it asked, and since when."""

IMAGE = "image"
"""The label with the image of a lease, and the word for it in the keys of adopted ones."""

SYSTEM = "metal3"
"""The first word of the keys of its leases."""

WORDS = Words(SYSTEM, "host", "this cluster", are_unique=True)
HOSTS = Names(WORDS)
"""How metrics name hosts."""

Picture = reconcile.Picture[BareMetalHost]
"""The observations and actions of a pass over hosts; by UID."""


def host_of_object(host: BareMetalHost, verb: str, verbs: Collection[Verb]) -> Host:
    """Return a host as the holder of a lease, with labels for people; `verbs`: all it is for."""
    labels = {"holder": name_of(host), "verb": verb}
    if Verb.PROVISION in verbs and verb != Verb.PROVISION:
        labels[THEN] = Verb.PROVISION.value
    if Verb.PROVISION in verbs and (image := image_of(host)):
        labels[IMAGE] = image
    if error := error_text(host):
        labels[ERROR] = error
    return Host(SYSTEM, uid_of(host), {name: label_text(text) for name, text in labels.items()})


def units_for_image(
    rules: Rules, host: BareMetalHost, leases: Collection[Lease]
) -> Mapping[str, int]:
    """Return which units a host needs for its image, beside those of its leases.

    Of a lease that was asked for with the image, the units are not compared: other fields of the
    host may have changed since.
    """
    image = label_text(image_of(host))
    if any(
        Verb.PROVISION in (one.labels.get("verb"), one.labels.get(THEN))
        and one.labels.get(IMAGE, image) == image
        for one in leases
    ):
        return {}
    has = units_of(leases)
    needs = rules.needs(host, Verb.PROVISION).units
    return {pool: units - has[pool] for pool, units in needs.items() if units > has[pool]}


class Reconciler(reconcile.Reconciler[BareMetalHost]):
    """Passes over the hosts of one cluster."""

    def __init__(
        self,
        host_leases: HostLeases,
        requests: HostRequests,
        rules: Rules,
        resting: Resting | None = None,
    ) -> None:
        """Prepare to pass over hosts; `resting` takes note of those that each pass sees."""
        super().__init__(host_leases, _Cluster(requests, rules, resting or Resting()))

    async def read(self, lease: Lease, listed: BareMetalHost | None) -> BareMetalHost | None:
        """Return the host of a lease or ticket as it is now; None: it is gone."""
        return await self._system.confirmed(lease, listed)


class _Cluster:
    """The hosts of one cluster."""

    words = WORDS
    log = logging.getLogger("moorage.metal3")

    def __init__(self, requests: HostRequests, rules: Rules, resting: Resting) -> None:
        self._requests = requests
        self._rules = rules
        self._resting = resting

    async def hosts(self) -> dict[str, BareMetalHost]:
        hosts = {uid_of(host): host for host in await self._requests.all()}
        self._resting.look(hosts)
        return hosts

    def name_of(self, uuid: str, host: BareMetalHost) -> str:
        return name_of(host)

    def lease_name_of(self, lease: Lease) -> str:
        return lease.labels.get("holder") or str(host_of(lease))

    def occupation(self, host: BareMetalHost) -> Occupation:
        """A host that BMO removes needs no units, but may keep some: Ironic may work on it."""
        rests, leaves = self._resting.rests(host), is_leaving(host)
        held = self._resting.is_held(host) or work_of(host) not in (None, *HELD)
        return occupation_of(
            works=may_work(host),
            failed=rests or leaves,
            retries=not rests if leaves else not held,
        )

    async def confirmed(self, lease: Lease, listed: BareMetalHost | None) -> BareMetalHost | None:
        """Read the host again, always: the list may be a copy that is out of date."""
        if listed is not None:
            return await self._requests.again(listed)
        uid, name = str(host_of(lease)), lease.labels.get("holder", "")
        if HOST_NAME.fullmatch(name) and len(name) < LABEL_LENGTH_MAX:
            return await self._requests.named(name, uid)
        # Another program than a governor has made the lease, or its label is cut off.
        hosts = await self._requests.now()
        return next((host for host in hosts if uid_of(host) == uid), None)

    def may_lack(self, host: BareMetalHost, leases: Collection[Lease]) -> bool:
        return bool(self._units(host, leases))

    async def lacking(self, listed: BareMetalHost, leases: Collection[Lease]) -> Busy | None:
        host = await self._requests.again(listed)
        if host is None or self.occupation(host) is not Occupation.NEEDS:
            return None
        if not (units := self._units(host, leases)):
            return None
        holder = host_of_object(host, ADOPTED, self._verbs(host))
        # Another image may need other units again, by another lease.
        key = f"{IMAGE}/{key_part(units)}"
        return Busy(holder, units, state_of(host) or "new", key if leases else "")

    def _units(self, host: BareMetalHost, leases: Collection[Lease]) -> Mapping[str, int]:
        """Return the units that a host lacks for what it does, or may start at any moment."""
        verbs = self._verbs(host)
        if not leases:
            return self._rules.needs_for(host, verbs).units
        return units_for_image(self._rules, host, leases) if Verb.PROVISION in verbs else {}

    def _verbs(self, host: BareMetalHost) -> Collection[Verb]:
        """Return what a host does, or may start at any moment, and what follows unless paused."""
        verb = work_of(host) or start_of(host)
        if verb is None or not occupies(host):
            return ()
        return verbs_of(host, verb) if pause_of(host) is None else (verb,)

    async def before_release(self, lease: Lease, host: BareMetalHost) -> bool:
        """Return True: nothing needs to be done."""
        return True

    def outcome(self, host: BareMetalHost) -> Outcome | None:
        return result_of(host)
