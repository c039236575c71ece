"""The requests that start work on Ironic's nodes."""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from moorage.integrations.ironic.nodes import Node, NodeReader
from moorage.integrations.ironic.reconcile import host_of_node
from moorage.integrations.ironic.refusals import is_for_now, outcome_of
from moorage.integrations.ironic.states import is_busy
from moorage.integrations.ironic.wishes import mark_of
from moorage.integrations.provisioning.rules import Needs
from moorage.integrations.provisioning.start import Start, StartResult


def start_of(
    node: Node, verb: str, needs: Needs, body: Mapping[str, Any], whose: tuple[str, str]
) -> Start:
    """Return the start of a node for a verb; `whose` is a label of its leases, and its mark."""
    host = host_of_node(node, verb)
    label, name = whose
    return Start(
        host=replace(host, labels={**host.labels, label: name}),
        verb=verb,
        needs=needs.units,
        body=body,
        forced=needs.exempt,
        marks=mark_of(node, name),
    )


class NodeRequests:
    """Reads one node, and asks for its provision state. Every call raises IronicError."""

    def __init__(self, nodes: NodeReader, fields: list[str]) -> None:
        """Prepare to ask; `fields` are those of a node that decide."""
        self._nodes = nodes
        self._fields = fields

    async def read(self, start: Start) -> Node | None:
        """Return the node of a start as it is now."""
        return await self._nodes.node(start.host.uuid, self._fields)

    def works(self, node: Node) -> bool:
        """Return whether it needs its unit; on hold, too."""
        return is_busy(str(node.get("provision_state")), hold_counts=True)

    def is_locked(self, node: Node) -> bool:
        """Return whether a conductor works on it now."""
        return bool(node.get("reservation"))

    async def send(self, start: Start) -> StartResult:
        """Ask for the provision state."""
        status, fault = await self._nodes.provision(start.host.uuid, start.body)
        soon = status == HTTPStatus.CONFLICT or is_for_now(status, fault)
        text = fault or f"Ironic answered {status}"
        return StartResult(outcome_of(status, fault), text, soon=soon)
