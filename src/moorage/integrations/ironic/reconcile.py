"""How a pass sees Ironic's nodes: which are busy, what they need, what becomes of their work."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from http import HTTPStatus

from moorage.integrations.ironic.nodes import Node, NodeReader
from moorage.integrations.ironic.rules import IMAGE, Rules, verbs_of, warm_of
from moorage.integrations.ironic.states import FAILED, is_busy
from moorage.integrations.ironic.wishes import WANT, is_begun
from moorage.integrations.provisioning import reconcile
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.hosts import ADOPTED, Host, host_of, label_text
from moorage.integrations.provisioning.occupation import Occupation, occupation_of
from moorage.integrations.provisioning.pass_metrics import Names
from moorage.integrations.provisioning.reconcile import Busy, Outcome, Words
from moorage.integrations.provisioning.rules import value_of
from moorage.wire.admission import Lease

SYSTEM = "ironic"
"""The first word of the keys of its leases."""

WORDS = Words(SYSTEM, "node", "this Ironic")
NODES = Names(WORDS, {"conductor": lambda node: value_of(node, "conductor") or ""})
"""How metrics name nodes."""


@dataclass(frozen=True)
class Picture(reconcile.Picture[Node]):
    """The observations and actions of a pass over nodes."""

    warm: Collection[tuple[str, str]] = ()
    """Conductors and images for which `first_of_image` is over."""

    @property
    def nodes(self) -> dict[str, Node]:
        """The nodes, by UUID."""
        return self.hosts


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


class Reconciler(reconcile.Reconciler[Node]):
    """Passes over the nodes of one Ironic."""

    def __init__(
        self, host_leases: HostLeases, nodes: NodeReader, rules: Rules, *, hold_counts: bool = False
    ) -> None:
        """Prepare to pass over nodes; `hold_counts`: those on hold are busy, too."""
        self._ironic = _Ironic(nodes, rules, hold_counts)
        super().__init__(host_leases, self._ironic)

    async def run_once(self) -> Picture:
        """Make one pass. Raises IronicError, UnreachableError, RefusedError."""
        seen = await super().run_once()
        return Picture(**vars(seen), warm=self._ironic.warm)


class _Ironic:
    """The nodes of one Ironic."""

    words = WORDS
    log = logging.getLogger("moorage.ironic")

    def __init__(self, nodes: NodeReader, rules: Rules, hold_counts: bool) -> None:
        self._nodes = nodes
        self._rules = rules
        self._hold_counts = hold_counts
        self.warm: Collection[tuple[str, str]] = ()
        """As of the last list."""

    async def hosts(self) -> dict[str, Node]:
        nodes = {str(node["uuid"]): node for node in await self._nodes.all(self._rules.listed)}
        self.warm = warm_of(nodes.values())
        return nodes

    def name_of(self, uuid: str, host: Node) -> str:
        return uuid

    def lease_name_of(self, lease: Lease) -> str:
        return str(host_of(lease))

    def occupation(self, host: Node) -> Occupation:
        """A failure is a state of its own, and Ironic tries nothing again by itself."""
        state = str(host.get("provision_state"))
        busy = is_busy(state, hold_counts=self._hold_counts)
        return occupation_of(works=busy or state in FAILED, failed=state in FAILED)

    async def confirmed(self, lease: Lease, listed: Node | None) -> Node | None:
        if listed is not None:
            return listed
        # A list may lack a node that is there: only Ironic's 404 says that it is gone.
        return await self._nodes.node(str(host_of(lease)), self._rules.fields)

    def may_lack(self, host: Node, leases: Collection[Lease]) -> bool:
        return not leases

    async def lacking(self, listed: Node, leases: Collection[Lease]) -> Busy | None:
        state = str(listed["provision_state"])
        needs = self._rules.needs(listed, verbs_of(state), self.warm)
        if not needs.units:
            return None
        # Alone: a list omits the conductor, which people want to see.
        node = await self._nodes.node(str(listed["uuid"]), self._rules.fields)
        if node is None or self.occupation(node) is not Occupation.NEEDS:
            return None
        return Busy(host_of_node(node, ADOPTED), needs.units, state)

    async def before_release(self, lease: Lease, host: Node) -> bool:
        """Remove the wish from which the work came; False: Ironic has locked the node, or failed.

        If it were still there after the lease has ended, it would be carried out again.
        """
        if not is_begun(lease.record, host):
            return True
        status = await self._nodes.extra_put(str(host["uuid"]), WANT, None)
        return status < HTTPStatus.BAD_REQUEST or status == HTTPStatus.NOT_FOUND

    def outcome(self, host: Node) -> Outcome:
        if host.get("provision_state") in FAILED:
            return Outcome("failed", str(host.get("last_error") or ""))
        return Outcome("ok")
