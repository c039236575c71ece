"""Compares Ironic's nodes with the leases of hosts: adopts what is busy, releases what is not.

One pass reads everything again, and remembers nothing of earlier ones. Any number of processes may
run it side by side: a release counts only if nobody has taken a step meanwhile, and who is adopted
twice has one lease.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from moorage.client.transport import RefusedError, UnreachableError
from moorage.integrations.clock import monotonic
from moorage.integrations.ironic.nodes import Node, NodeReader
from moorage.integrations.ironic.rules import IMAGE, Rules, verbs_of, warm_of
from moorage.integrations.ironic.states import FAILED, is_busy
from moorage.integrations.ironic.wishes import WANT, is_begun
from moorage.integrations.provisioning.host_leases import (
    ADOPTED,
    EndedError,
    Host,
    HostLeases,
    host_of,
    installation_of,
    label_text,
    work_state_of,
)
from moorage.integrations.provisioning.known_hosts import KnownHosts
from moorage.integrations.provisioning.rules import value_of
from moorage.integrations.provisioning.unit_release import is_over_after_reading
from moorage.wire.admission import Lease

SYSTEM = "ironic"
"""The first word of the keys of its leases."""

RENEWALS = 3
"""How many times a lease is renewed within its TTL, so that it is shown as `unheard` only if no
process governs its host."""

log = logging.getLogger("moorage.ironic")


@dataclass(frozen=True)
class Picture:
    """What a pass has seen and done."""

    nodes: dict[str, Node] = field(default_factory=dict)
    """By UUID."""
    busy: frozenset[str] = frozenset()
    warm: Collection[tuple[str, str]] = ()
    """Conductors and images for which `first_of_image` is over."""
    leases: dict[str, list[Lease]] = field(default_factory=dict)
    """The leases that were not released, as they were before the nodes were read."""
    adopted: int = 0
    released: int = 0
    failed: int = 0
    """Nodes that are busy without a unit because Moorage refused to count them."""
    uncounted: frozenset[str] = frozenset()
    """The pools of which these need units: nothing else can be started from them."""
    units: Mapping[str, int] = field(default_factory=dict)
    """Units that its nodes had when the pass began, by pool."""
    foreign: Sequence[Lease] = ()
    """The leases of nodes that this Ironic has never had: another one's, or unknown."""

    @property
    def hosts(self) -> dict[str, Node]:
        """The nodes, by UUID."""
        return self.nodes


def host_of_node(node: Node, verb: str) -> Host:
    """Return a node as the holder of a lease, with labels for people."""
    uuid = str(node["uuid"])
    labels = {
        "holder": value_of(node, "name") or uuid,
        "node": uuid,
        "verb": verb,
        "conductor": value_of(node, "conductor") or "",
        "image": value_of(node, IMAGE) or "",
    }
    plain = {name: label_text(text) for name, text in labels.items()}
    return Host(SYSTEM, uuid, {name: text for name, text in plain.items() if text})


class Reconciler:
    """Passes over the nodes of one Ironic."""

    def __init__(
        self, host_leases: HostLeases, nodes: NodeReader, rules: Rules, *, hold_counts: bool = False
    ) -> None:
        self._host_leases = host_leases
        self._nodes = nodes
        self._rules = rules
        self._hold_counts = hold_counts
        self._known = KnownHosts(host_leases.installation)
        self._unknown: set[str] = set()
        """Leases of which the log says that nobody can tell whose they are."""
        self._renewed: dict[str, float] = {}
        """When this process renewed each lease."""

    async def run_once(self) -> Picture:
        """Make one pass. Raises IronicError, UnreachableError, RefusedError."""
        # The leases first: what is released must have been noted before the reading began.
        noted = await self._host_leases.working(SYSTEM)
        nodes = {str(node["uuid"]): node for node in await self._nodes.all(self._rules.listed)}
        busy = {uuid for uuid, node in nodes.items() if self._is_busy(node)}
        self._known.look(nodes, noted)
        own = [lease for leases in noted.values() for lease in leases if self.governs(lease)]
        left: dict[str, list[Lease]] = {}
        released = 0
        for lease in own:
            uuid = str(host_of(lease))
            if await self._judged(lease, nodes.get(uuid)):
                released += 1
                continue
            left.setdefault(uuid, []).append(lease)
            await self._renew(lease)
        warm = warm_of(nodes.values())
        adopted, failed, uncounted = await self._adopt(
            [node for uuid, node in nodes.items() if uuid in busy and uuid not in noted], warm
        )
        live = {lease.id for leases in left.values() for lease in leases}
        self._renewed = {one: at for one, at in self._renewed.items() if one in live}
        foreign = [one for leases in noted.values() for one in leases if not self.governs(one)]
        self._tell_unknown(foreign)
        return Picture(
            nodes,
            frozenset(busy),
            warm,
            left,
            adopted=adopted,
            released=released,
            failed=failed,
            uncounted=uncounted,
            units=_units(own),
            foreign=foreign,
        )

    def governs(self, lease: Lease) -> bool:
        """Return whether a lease or ticket is of a node that this Ironic has, or has had."""
        return self._known.has(lease)

    def _tell_unknown(self, foreign: Iterable[Lease]) -> None:
        """Log, once for each, which units nobody may ever release."""
        unknown = {one.id: one for one in foreign if installation_of(one) is None}
        for lease_id in unknown.keys() - self._unknown:
            log.warning(
                "the unit of node %s stays: this Ironic has never had it. If it was deleted, run"
                " `moorage lease revoke %s`",
                host_of(unknown[lease_id]),
                lease_id,
            )
        self._unknown = {*unknown}

    async def _judged(self, lease: Lease, node: Node | None) -> bool:
        """Release a lease if its work is over; one that Moorage refuses does not stop the pass."""
        uuid = host_of(lease)
        assert uuid is not None
        if node is None and is_over_after_reading(work_state_of(lease), busy=False):
            # A list may lack a node that is there: only Ironic's 404 says that it is gone.
            node = await self._nodes.node(uuid, self._rules.fields)
        try:
            return await self._release(lease, node)
        except RefusedError as refusal:
            log.error("the lease of node %s stays: %s", uuid, refusal)
            return False

    async def _release(self, lease: Lease, node: Node | None) -> bool:
        """Release the lease of a node whose work is over; return whether it was released.

        The wish from which the work came is removed first. If it were still there after the lease
        has ended, it would be carried out again.
        """
        state = work_state_of(lease)
        busy = node is not None and self._is_busy(node)
        if not is_over_after_reading(state, busy=busy):
            return False
        if node is not None:
            if is_begun(lease.record, node) and not await self._remove_wish(node):
                return False
            if state.begun and lease.outcome is None:
                failed = node.get("provision_state") in FAILED
                detail = label_text(str(node.get("last_error") or "")) if failed else ""
                await self._host_leases.report(lease, "failed" if failed else "ok", detail)
        return await self._host_leases.release_after_reading(lease, busy=busy)

    async def _remove_wish(self, node: Node) -> bool:
        """Remove the wish of a node; False: it is locked, or Ironic has failed."""
        status = await self._nodes.extra_put(str(node["uuid"]), WANT, None)
        return status < HTTPStatus.BAD_REQUEST or status == HTTPStatus.NOT_FOUND

    async def _adopt(
        self, nodes: Collection[Node], warm: Collection[tuple[str, str]]
    ) -> tuple[int, int, frozenset[str]]:
        """Count nodes that are busy without a unit.

        Returns how many are counted, how many are not, and the pools of those.
        """
        if not nodes:
            return 0, 0, frozenset()
        # Again: a unit may have been granted after the first look, and before the node was read.
        working = await self._host_leases.working(SYSTEM)
        adopted = failed = 0
        refused: set[str] = set()
        for node in nodes:
            needs = self._rules.needs(node, verbs_of(str(node["provision_state"])), warm)
            if node["uuid"] in working or not needs.units:
                continue
            # Alone: a list omits the conductor, which people want to see.
            described = await self._nodes.node(str(node["uuid"]), self._rules.fields)
            if described is None or not self._is_busy(described):
                continue  # its unit was released between the two looks
            try:
                await self._host_leases.adopt(host_of_node(described, ADOPTED), needs.units)
            except (RefusedError, EndedError) as error:
                log.error("node %s is busy and cannot be counted: %s", node["uuid"], error)
                refused |= needs.units.keys()
                failed += 1
            else:
                log.info("node %s is %s: counted", node["uuid"], node["provision_state"])
                adopted += 1
        return adopted, failed, frozenset(refused)

    async def _renew(self, lease: Lease) -> None:
        last = self._renewed.get(lease.id, float("-inf"))
        if lease.ttl is None or monotonic() - last < lease.ttl / RENEWALS:
            return
        try:
            await self._host_leases.renew(lease)
        except (RefusedError, UnreachableError) as error:
            log.debug("lease %s is not renewed: %s", lease.id, error)
            return
        self._renewed[lease.id] = monotonic()

    def _is_busy(self, node: Node) -> bool:
        return is_busy(str(node.get("provision_state")), hold_counts=self._hold_counts)


def _units(leases: Iterable[Lease]) -> Mapping[str, int]:
    """Return the units of leases, by pool."""
    units: Counter[str] = Counter()
    for lease in leases:
        units.update({need.pool: need.units for need in lease.needs})
    return units
