"""The typed native API of the ledger: claims, explanations, providers, lists, changes, tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from datetime import datetime
from typing import TYPE_CHECKING

from moorage.client.calling import Room
from moorage.client.transport import RefusedError
from moorage.client.watch import Watch
from moorage.wire.admin import Token, TokenMade, TokenWanted
from moorage.wire.audit import AuditEntry
from moorage.wire.capacity import Capacity, CapacityAsked
from moorage.wire.ledger import (
    Claim,
    ClaimWanted,
    Explained,
    ProviderOutcomes,
    ProvidersWanted,
    Question,
)
from moorage.wire.operations import admin, feed, ledger
from moorage.wire.pages import PAGE_MAX
from moorage.wire.providers import ConsumersAsked, ConsumerShown, ProviderPage, ProviderShown

if TYPE_CHECKING:
    from moorage.wire.usages import UsageLine, UsagesAsked

FORBIDDEN = 403


class Ledger(Room):
    """The ledger of one server.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server.
    """

    def claim(self, wanted: ClaimWanted) -> Claim:
        """Claim resources; the server selects the providers.

        Set `consumer` yourself if you want to retry after UnreachableError: RefusedError with the
        code `consumer_generation` then means that the first try succeeded. The code `no_capacity`
        means that no candidate has enough capacity; `explain` returns the reasons.
        """
        return self._call(ledger.CREATE_CLAIM, body=wanted)

    def explain(self, asked: Question) -> Explained:
        """Return why no candidate is found for a question; a `ClaimWanted` is one as well."""
        members = asdict(asked)
        body = {field.name: members[field.name] for field in fields(Question)}
        return self._call(ledger.EXPLAIN, body=body)

    def explain_candidates(self, query: str) -> Explained:
        """As `explain`, for the query string of Placement's `GET /allocation_candidates`.

        An address or a line of a log that contains it will do.
        """
        return self._call(ledger.EXPLAIN_BY_QUERY, query={"candidates": query})

    def providers_upsert(self, wanted: ProvidersWanted) -> ProviderOutcomes:
        """Create or update providers; it is safe to repeat."""
        return self._call(ledger.UPSERT_PROVIDERS, body=wanted)

    def providers_page(self, cursor: str | None = None, limit: int = PAGE_MAX) -> ProviderPage:
        """Return one page of providers; watch from `as_of` of the first page."""
        return self._call(ledger.LIST_PROVIDERS, query={"limit": limit, "cursor": cursor})

    def providers(self) -> Iterator[ProviderShown]:
        """Yield all providers, by UUID."""
        for page in self._pages(ledger.LIST_PROVIDERS):
            yield from page.providers

    def providers_named(self, name: str) -> list[ProviderShown]:
        """Return the provider with exactly this name, if there is one."""
        return self._call(ledger.LIST_PROVIDERS, query={"limit": 1, "name": name}).providers

    def providers_with(self, id_prefix: str, limit: int) -> list[ProviderShown]:
        """Return the first providers whose UUIDs begin so."""
        asked = {"limit": limit, "id_prefix": id_prefix}
        return self._call(ledger.LIST_PROVIDERS, query=asked).providers

    def tree_of(self, uuid: str) -> Iterator[ProviderShown]:
        """Yield the providers of the tree that this one is in, by UUID."""
        for page in self._pages(ledger.LIST_PROVIDERS, query={"tree": uuid}):
            yield from page.providers

    def provider(self, uuid: str) -> ProviderShown:
        """Return a provider."""
        return self._call(ledger.GET_PROVIDER, uuid)

    def provider_drain(self, uuid: str, reason: str = "") -> ProviderShown:
        """Place nothing new on a provider and all below it; what is allocated stays."""
        return self._call(ledger.DRAIN_PROVIDER, uuid, body={"reason": reason})

    def provider_resume(self, uuid: str, reason: str = "") -> ProviderShown:
        """Use a drained provider again."""
        return self._call(ledger.RESUME_PROVIDER, uuid, body={"reason": reason})

    def provider_delete(self, uuid: str, reason: str = "") -> None:
        """Delete a provider that has neither children nor allocations."""
        self._call(ledger.DELETE_PROVIDER, uuid, query={"reason": reason or None})

    def consumers(self, asked: ConsumersAsked | None = None) -> Iterator[ConsumerShown]:
        """Yield consumers, by UUID. `cursor` and `limit` of what is asked do not count."""
        wanted = asdict(asked or ConsumersAsked())
        for page in self._pages(ledger.LIST_CONSUMERS, query=wanted):
            yield from page.consumers

    def consumer(self, uuid: str) -> ConsumerShown:
        """Return a consumer."""
        return self._call(ledger.GET_CONSUMER, uuid)

    def usages(self, asked: UsagesAsked | None = None) -> Iterator[UsageLine]:
        """Yield sums of what consumers hold. `cursor` and `limit` of what is asked do not count."""
        wanted = {} if asked is None else asdict(asked)
        for page in self._pages(ledger.LIST_USAGES, query=wanted):
            yield from page.lines

    def capacity(self, asked: CapacityAsked | None = None) -> Capacity:
        """Return the sums of all inventories, by class and group, as of one revision."""
        return self._call(ledger.GET_CAPACITY, query=asdict(asked or CapacityAsked()))

    def now(self) -> str | None:
        """Return the cursor after every change so far; None: the caller may not watch."""
        try:
            return self._call(feed.WATCH, query={"wait": 0, "limit": 1}).next
        except RefusedError as refusal:
            if refusal.status == FORBIDDEN:
                return None
            raise

    def watch(self, after: str | None = None, kinds: Iterable[str] = ()) -> Watch:
        """Follow all changes after a cursor; see `Watch`."""
        return Watch(self._transport, after, kinds)

    def audit(
        self,
        target: str | None = None,
        *,
        who: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[AuditEntry]:
        """Yield the audit log (who did what to Moorage itself), newest first.

        The arguments are filters, see `wire.audit.AuditAsked`.
        """
        times = {name: at and at.isoformat() for name, at in (("since", since), ("until", until))}
        asked = {"target": target, "who": who, "action": action, **times}
        for page in self._pages(admin.LIST_AUDIT, query=asked):
            yield from page.entries

    def tokens(self) -> Iterator[Token]:
        """Yield all tokens without their secrets, oldest first."""
        for page in self._pages(admin.LIST_TOKENS):
            yield from page.tokens

    def token_create(self, wanted: TokenWanted) -> TokenMade:
        """Create a token; only this answer contains its secret."""
        return self._call(admin.CREATE_TOKEN, body=wanted)

    def token_revoke(self, token_id: str, *, leases: bool = False) -> None:
        """Revoke a token and end its tickets, with `leases` its leases, too."""
        self._call(admin.REVOKE_TOKEN, token_id, query={"revoke_leases": leases or None})
