"""Looks at nodes of Ironic's: the ledger, then Ironic and Nova, then the ledger again."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from moorage.integrations.ironic.report.mapping import FIELDS
from moorage.integrations.nova import node_rules
from moorage.integrations.nova.asking import Nova
from moorage.integrations.nova.consumer_rules import OURS
from moorage.integrations.nova.facts import Server
from moorage.integrations.nova.findings import Finding, Unclear
from moorage.integrations.nova.ledger_view import Held, held_of
from moorage.integrations.nova.pacing import NoAnswerError
from moorage.integrations.nova.ports import IronicReads, LedgerReads
from moorage.integrations.nova.together import together
from moorage.integrations.provisioning.start import HostSystemError


class NodeLooks:
    """Looks at nodes. Calls raise what the ledger raises."""

    def __init__(self, ledger: LedgerReads, ironic: IronicReads, nova: Nova | None) -> None:
        """Prepare to look; `nova` None: nobody but Ironic is asked."""
        self._ledger, self._ironic, self._nova = ledger, ironic, nova

    async def having(self, uuids: Collection[str]) -> set[str]:
        """Return which of these nodes Ironic has, or may have."""

        async def has(uuid: str) -> bool:
            try:
                return await self._ironic.node(uuid, FIELDS) is not None
            except HostSystemError:
                return True

        return {uuid for uuid, there in (await together(uuids, has)).items() if there}

    async def look(
        self, nodes: Mapping[str, Collection[str]], now: datetime
    ) -> dict[str, list[Finding | Unclear]]:
        """Return what is wrong with each node, or may be; the values are consumers of it."""
        return await together(nodes, lambda uuid: self._one(uuid, nodes[uuid], now))

    async def _one(
        self, uuid: str, consumers: Collection[str], now: datetime
    ) -> list[Finding | Unclear]:
        before = await self._ledger.provider(uuid)
        try:
            node = await self._ironic.node(uuid, FIELDS)
            named = None if node is None else node.get("instance_uuid")
            asked = {*consumers, *([named] if named else ())}
            held = [await self._held(one, uuid) for one in asked]
            servers = await self._servers(asked)
        except (HostSystemError, NoAnswerError) as error:
            return [Unclear(uuid, str(error))]
        after = await self._ledger.provider(uuid)
        if before is None or after is None:
            if before is not None or after is not None or node is None:
                return []
            found = node_rules.node_without_provider(node, None)
            return [] if found is None else [found]
        return self._judged(
            (before, after), node, [one for one in held if one is not None], servers, now
        )

    def _judged(
        self,
        shown: tuple[Any, Any],
        node: Mapping[str, Any] | None,
        held: Collection[Held],
        servers: Collection[Server] | None,
        now: datetime,
    ) -> list[Finding | Unclear]:
        """Return what is wrong with a node as the ledger showed it both times."""
        if node is None:
            return [one for one in (node_rules.ghost_node(shown[1], None),) if one is not None]
        if servers is not None and any(one.is_unknown for one in servers):
            return [Unclear(shown[1].uuid, "the cell of its server does not answer")]
        verdicts = [
            (
                node_rules.node_traits(root, node),
                node_rules.instance_disagrees(root, node, held, servers, now),
            )
            for root in shown
        ]
        return [
            later for earlier, later in zip(*verdicts, strict=True) if earlier is not None and later
        ]

    async def _held(self, consumer: str, node: str) -> Held | None:
        """Return a consumer that may be a server, if it holds something of a node."""
        shown = await self._ledger.consumer(consumer)
        if shown is None or shown.type not in (None, *OURS):
            return None
        held = held_of(shown)
        return held if node in held.holdings else None

    async def _servers(self, uuids: Collection[str]) -> list[Server] | None:
        if self._nova is None:
            return None
        found = [await self._nova.server(uuid) for uuid in uuids]
        return [one for one in found if one is not None]
