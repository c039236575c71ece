"""The native API of reporters for programs with asyncio: their groups, pins and reports.

The same calls as `client.reporting`, on connections that stay open.
"""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

from moorage.client.transport import UNROUTED, RefusedError, refused_token
from moorage.integrations.native_api import NativeApi
from moorage.wire.operations import ledger, reporting
from moorage.wire.providers import ProviderShown
from moorage.wire.reporting import (
    Membership,
    MemberWanted,
    NodeOutcomes,
    ObservedWanted,
    ReporterGroup,
    ReportWanted,
)


class ReportApi(NativeApi):
    """The groups of reporters of one server.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server.
    """

    async def _content(self, method: str, path: str, body: Any, wait: str | float | None) -> Any:
        try:
            return await super()._content(method, path, body, wait)
        except RefusedError as refusal:
            if refusal.status == HTTPStatus.UNAUTHORIZED:
                refusal.args = (
                    f"{self._url} {refused_token(self._token)}; set one with --token-file or"
                    " MOORAGE_TOKEN",
                )
            elif refusal.status == HTTPStatus.NOT_FOUND and refusal.code in UNROUTED:
                refusal.args = (f"{self._url} is not a Moorage server: check MOORAGE_URL or --url",)
            raise

    async def join(self, group: str, member: str, wanted: MemberWanted) -> Membership:
        """Join a group, or stay in it. RefusedError `fenced`: another instance has taken over."""
        return await self._call(reporting.JOIN_REPORTER_GROUP, group, member, body=wanted)

    async def leave(self, group: str, member: str, instance: str) -> None:
        """Leave a group, so that the nodes get other owners at once."""
        await self._call(reporting.LEAVE_REPORTER_GROUP, group, member, instance=instance)

    async def observed(self, group: str, wanted: ObservedWanted) -> ReporterGroup:
        """Replace the members of a group that the caller observes."""
        return await self._call(reporting.PUT_OBSERVED_MEMBERS, group, body=wanted)

    async def pins(self, group: str) -> dict[str, str]:
        """Return all pins of a group: the member by node."""
        pages = self._pages(reporting.LIST_PINS, group)
        return {pin.node: pin.member async for page in pages for pin in page.pins}

    async def nodes(self, group: str) -> dict[str, bool]:
        """Return the nodes that the group has reported: whether each is a ghost, by UUID."""
        pages = self._pages(reporting.LIST_REPORTER_GROUP_NODES, group)
        return {node.uuid: node.ghost async for page in pages for node in page.nodes}

    async def report(self, wanted: ReportWanted) -> NodeOutcomes:
        """Report nodes in one request. RefusedError `fenced`: the token is not the newest one."""
        return await self._call(reporting.SEND_REPORTS, body=wanted)

    async def providers(self) -> AsyncIterator[ProviderShown]:
        """Yield all providers, by UUID."""
        async for page in self._pages(ledger.LIST_PROVIDERS):
            for provider in page.providers:
                yield provider
