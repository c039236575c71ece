"""Sends the request that starts work on a node which has its units."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from moorage.integrations.ironic.nodes import Node, NodeReader
from moorage.integrations.ironic.reconcile import host_of_node
from moorage.integrations.ironic.rules import is_forced
from moorage.integrations.ironic.states import is_busy, requirement_of
from moorage.integrations.ironic.wishes import mark_of
from moorage.integrations.provisioning.host_leases import EndedError, HostLeases, TakenError
from moorage.integrations.provisioning.request_steps import Answered, Request, send_with_steps
from moorage.integrations.provisioning.rules import Needs
from moorage.integrations.provisioning.starts import NOT_SENT, Start, StartResult
from moorage.integrations.provisioning.unit_release import RequestOutcome, outcome_of
from moorage.wire.admission import Lease

LOCKED = HTTPStatus.CONFLICT
"""Ironic's answer while something works on the node: the request can be sent again soon."""


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
        forced=is_forced(needs, requirement_of(verb, str(node.get("provision_state")))),
        marks=mark_of(node, name),
    )


TOO_LATE = StartResult(RequestOutcome.REFUSED, "storing the request has taken too long", soon=True)
"""It was not sent, and can be sent again soon."""

Wanted = Callable[[Node], Start | None]
"""Returns what a node, read again, wants to start; None: nothing any more."""


class IronicStarter:
    """Starts work. Every call raises IronicError, UnreachableError and RefusedError."""

    def __init__(
        self, host_leases: HostLeases, nodes: NodeReader, fields: list[str], wanted: Wanted
    ):
        self._host_leases = host_leases
        self._nodes = nodes
        self._fields = fields
        self._wanted = wanted

    async def begin(self, start: Start, lease: Lease) -> StartResult:
        """Send the request of a start, unless another process was first or it is out of date.

        The node is read again after its units were granted. Another process may have carried out
        the same start meanwhile, and it has then ended what the start was made from.
        """
        if lease.key != f"{start.host.keys}{start.verb}" or lease.record_version:
            return NOT_SENT
        node = await self._nodes.node(start.host.uuid, self._fields)
        if node is not None and is_busy(str(node.get("provision_state")), hold_counts=True):
            return NOT_SENT  # somebody else has started it, so it needs its unit
        now = None if node is None else self._wanted(node)
        if now is None or (now.kind, now.verb) != (start.kind, start.verb):
            locked = node is not None and bool(node.get("reservation"))
            await self._host_leases.give_back(lease, requeue=locked)
            return NOT_SENT

        async def send() -> Answered[StartResult]:
            return _answered(await self._send(now))

        request = Request(uuid4().hex, send, lambda: _answered(TOO_LATE))
        try:
            return await send_with_steps(self._host_leases, lease, request, now.marks)
        except (TakenError, EndedError):
            return NOT_SENT

    async def begin_without_units(self, start: Start) -> StartResult:
        """Send the request of a start that is not limited."""
        node = await self._nodes.node(start.host.uuid, self._fields)
        now = None if node is None else self._wanted(node)
        return NOT_SENT if now is None or now.needs else await self._send(now)

    async def _send(self, start: Start) -> StartResult:
        status, text = await self._nodes.provision(start.host.uuid, start.body)
        text = text or f"it has answered {status}"
        return StartResult(outcome_of(status), text, soon=status == LOCKED)


def _answered(answer: StartResult) -> Answered[StartResult]:
    assert answer.outcome is not None
    return Answered(answer, answer.outcome, requeue=answer.soon)
