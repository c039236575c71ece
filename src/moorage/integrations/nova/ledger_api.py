"""Reads the ledger for an audit."""

from collections.abc import AsyncIterator
from http import HTTPStatus

from moorage.client.transport import UNROUTED, RefusedError
from moorage.integrations.native_api import NativeApi
from moorage.wire.operations import ledger
from moorage.wire.providers import ConsumerShown, ProviderShown


class LedgerApi(NativeApi):
    """Providers and consumers of one server.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server.
    """

    async def providers(self) -> AsyncIterator[ProviderShown]:
        """Yield all providers, by UUID."""
        async for page in self._pages(ledger.LIST_PROVIDERS):
            for one in page.providers:
                yield one

    async def consumers(self) -> AsyncIterator[ConsumerShown]:
        """Yield all consumers, by UUID."""
        async for page in self._pages(ledger.LIST_CONSUMERS):
            for one in page.consumers:
                yield one

    async def provider(self, uuid: str) -> ProviderShown | None:
        """Return a provider; None: there is none."""
        try:
            return await self._call(ledger.GET_PROVIDER, uuid)
        except RefusedError as refusal:
            _check_missing(refusal)
            return None

    async def consumer(self, uuid: str) -> ConsumerShown | None:
        """Return a consumer; None: there is none."""
        try:
            return await self._call(ledger.GET_CONSUMER, uuid)
        except RefusedError as refusal:
            _check_missing(refusal)
            return None


def _check_missing(refusal: RefusedError) -> None:
    """Raise a refusal that says anything else than that there is no such thing."""
    if refusal.status != HTTPStatus.NOT_FOUND or refusal.code in UNROUTED:
        raise refusal
