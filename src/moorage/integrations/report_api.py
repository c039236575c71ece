"""The native API of reporters for programs with asyncio: their groups, pins and reports.

The same calls as `client.reporting`, on connections that stay open.
"""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from moorage.client.transport import UNROUTED, RefusedError, refused_token
from moorage.integrations.native_api import NativeApi
from moorage.wire.providers import ProviderPage, ProviderShown
from moorage.wire.reporting import (
    Membership,
    MemberWanted,
    NodeOutcomes,
    NodePage,
    ObservedWanted,
    PinPage,
    ReporterGroup,
    ReportWanted,
)


class ReportApi(NativeApi):
    """The groups of reporters of one server.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server.
    """

    async def _content(
        self, method: str, path: str, body: Any = None, **query: str | float | None
    ) -> Any:
        try:
            return await super()._content(method, path, body, **query)
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
        return await self._ask(Membership, "PUT", _member(group, member), wanted)

    async def leave(self, group: str, member: str, instance: str) -> None:
        """Leave a group, so that the nodes get other owners at once."""
        await self._content("DELETE", _member(group, member), instance=instance)

    async def observed(self, group: str, wanted: ObservedWanted) -> ReporterGroup:
        """Replace the members of a group that the caller observes."""
        return await self._ask(ReporterGroup, "PUT", f"{_group(group)}/observed", wanted)

    async def pins(self, group: str) -> dict[str, str]:
        """Return all pins of a group: the member by node."""
        pages = self._pages(PinPage, f"{_group(group)}/pins")
        return {pin.node: pin.member async for page in pages for pin in page.pins}

    async def nodes(self, group: str) -> dict[str, bool]:
        """Return the nodes that the group has reported: whether each is a ghost, by UUID."""
        pages = self._pages(NodePage, f"{_group(group)}/nodes")
        return {node.uuid: node.ghost async for page in pages for node in page.nodes}

    async def report(self, wanted: ReportWanted) -> NodeOutcomes:
        """Report nodes in one request. RefusedError `fenced`: the token is not the newest one."""
        return await self._ask(NodeOutcomes, "POST", "/v1/reports", wanted)

    async def providers(self) -> AsyncIterator[ProviderShown]:
        """Yield all providers, by UUID."""
        async for page in self._pages(ProviderPage, "/v1/providers"):
            for provider in page.providers:
                yield provider


def _group(name: str) -> str:
    return f"/v1/reporter-groups/{quote(name, safe='')}"


def _member(group: str, member: str) -> str:
    return f"{_group(group)}/members/{quote(member, safe='')}"
