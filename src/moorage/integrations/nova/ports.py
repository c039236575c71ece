"""What an audit asks: the ledger, and Ironic. Nova is in `asking.py`."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol

from moorage.wire.providers import ConsumerShown, ProviderShown

Progress = Callable[[str, int, int], None]
"""Called with what is done, how much of it, and how much there is of it."""


class LedgerReads(Protocol):
    """The ledger; see `LedgerApi`."""

    def providers(self) -> AsyncIterator[ProviderShown]:
        """Yield all providers."""

    def consumers(self) -> AsyncIterator[ConsumerShown]:
        """Yield all consumers."""

    async def provider(self, uuid: str) -> ProviderShown | None:
        """Return a provider; None: there is none."""

    async def consumer(self, uuid: str) -> ConsumerShown | None:
        """Return a consumer; None: there is none."""


class IronicReads(Protocol):
    """Ironic's nodes; see `ironic.nodes.NodeReader`."""

    async def all(self, fields: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Return all nodes. Raises IronicError."""

    async def node(self, ident: str, fields: Sequence[str]) -> Mapping[str, Any] | None:
        """Return a node; None: 404. Raises IronicError."""
