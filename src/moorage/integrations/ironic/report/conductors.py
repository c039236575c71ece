"""Observes which of Ironic's conductors are alive, as members of a group of their own."""

import logging
from datetime import UTC, datetime

from moorage.client.transport import RefusedError
from moorage.integrations.ironic.nodes import IronicError, NodeReader
from moorage.integrations.report_api import ReportApi
from moorage.wire.reporting import ObservedWanted

STALE = "stale_report"
FAILED = "observer_failed"

log = logging.getLogger("moorage.ironic")


class Conductors:
    """The live conductors of one Ironic."""

    def __init__(self, api: ReportApi, nodes: NodeReader, group: str) -> None:
        self._api = api
        self._nodes = nodes
        self.group = group
        self._last: list[str] = []
        self._seen_at: datetime | None = None

    async def observe(self) -> bool:
        """Report which are alive, or that Ironic did not say; return whether it did.

        An error is never an empty list: with it the last list is sent again, or none, which the
        server refuses and keeps its own.

        Raises what the API raises.
        """
        asked_at = datetime.now(UTC)  # noqa: TID251 - the observer's own time is meant
        error = ""
        try:
            self._last, self._seen_at = await self._nodes.conductors(), asked_at
        except IronicError as failure:
            error = str(failure)
        wanted = ObservedWanted(members=self._last, seen_at=self._seen_at or asked_at, error=error)
        try:
            await self._api.observed(self.group, wanted)
        except RefusedError as refusal:
            if refusal.code not in (STALE, FAILED):
                raise
            log.debug("cannot report the conductors, the last list stays in force: %s", refusal)
        return not error
