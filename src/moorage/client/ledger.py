"""The typed native API of the ledger: claims, explanations, providers, lists, changes, tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from moorage.client.decoding import decode
from moorage.client.transport import RefusedError, Transport
from moorage.client.watch import Watch
from moorage.wire.admin import Token, TokenMade, Tokens, TokenWanted
from moorage.wire.audit import AuditEntry, AuditPage
from moorage.wire.capacity import Capacity, CapacityAsked
from moorage.wire.changes import Changes
from moorage.wire.ledger import (
    Claim,
    ClaimWanted,
    Explained,
    ProviderOutcomes,
    ProvidersWanted,
    Question,
)
from moorage.wire.pages import PAGE_MAX
from moorage.wire.providers import (
    ConsumerPage,
    ConsumersAsked,
    ConsumerShown,
    ProviderPage,
    ProviderShown,
)

T = TypeVar("T")

FORBIDDEN = 403


class Ledger:
    """The ledger of one server.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def claim(self, wanted: ClaimWanted) -> Claim:
        """Claim resources; the server selects the providers.

        Set `consumer` yourself if you want to retry after UnreachableError: RefusedError with the
        code `consumer_generation` then means that the first try succeeded. The code `no_capacity`
        means that no candidate has enough capacity; `explain` returns the reasons.
        """
        return self._ask(Claim, "POST", "/v1/claims", asdict(wanted))

    def explain(self, asked: Question) -> Explained:
        """Return why no candidate is found for a question; a `ClaimWanted` is one as well."""
        members = asdict(asked)
        body = {field.name: members[field.name] for field in fields(Question)}
        return self._ask(Explained, "POST", "/v1/explain", body)

    def explain_candidates(self, query: str) -> Explained:
        """As `explain`, for the query string of Placement's `GET /allocation_candidates`.

        An address or a line of a log that contains it will do.
        """
        return self._ask(Explained, "GET", f"/v1/explain?{urlencode({'candidates': query})}")

    def providers_upsert(self, wanted: ProvidersWanted) -> ProviderOutcomes:
        """Create or update providers; it is safe to repeat."""
        return self._ask(ProviderOutcomes, "POST", "/v1/providers:bulk", asdict(wanted))

    def providers_page(self, cursor: str | None = None, limit: int = PAGE_MAX) -> ProviderPage:
        """Return one page of providers; watch from `as_of` of the first page."""
        return self._page(ProviderPage, "/v1/providers", cursor, limit)

    def providers(self) -> Iterator[ProviderShown]:
        """Yield all providers, by UUID."""
        cursor: str | None = None
        while True:
            page = self.providers_page(cursor)
            yield from page.providers
            if (cursor := page.next) is None:
                return

    def providers_named(self, name: str) -> list[ProviderShown]:
        """Return the provider with exactly this name, if there is one."""
        return self._page(ProviderPage, "/v1/providers", None, 1, name=name).providers

    def providers_with(self, id_prefix: str, limit: int) -> list[ProviderShown]:
        """Return the first providers whose UUIDs begin so."""
        page = self._page(ProviderPage, "/v1/providers", None, limit, id_prefix=id_prefix)
        return page.providers

    def provider(self, uuid: str) -> ProviderShown:
        """Return a provider."""
        return self._ask(ProviderShown, "GET", _provider(uuid))

    def provider_drain(self, uuid: str, reason: str = "") -> ProviderShown:
        """Place nothing new on a provider and all below it; what is allocated stays."""
        return self._ask(ProviderShown, "POST", f"{_provider(uuid)}/drain", {"reason": reason})

    def provider_resume(self, uuid: str, reason: str = "") -> ProviderShown:
        """Use a drained provider again."""
        return self._ask(ProviderShown, "POST", f"{_provider(uuid)}/resume", {"reason": reason})

    def provider_delete(self, uuid: str, reason: str = "") -> None:
        """Delete a provider that has neither children nor allocations."""
        asked = f"?{urlencode({'reason': reason})}" if reason else ""
        self._transport.request("DELETE", f"{_provider(uuid)}{asked}")

    def consumers(self, asked: ConsumersAsked | None = None) -> Iterator[ConsumerShown]:
        """Yield consumers, by UUID. `cursor` and `limit` of what is asked do not count."""
        wanted = asdict(asked or ConsumersAsked())
        more = {
            name: str(value)
            for name, value in wanted.items()
            if value is not None and name not in ("cursor", "limit")
        }
        cursor: str | None = None
        while True:
            page = self._page(ConsumerPage, "/v1/consumers", cursor, PAGE_MAX, **more)
            yield from page.consumers
            if (cursor := page.next) is None:
                return

    def consumer(self, uuid: str) -> ConsumerShown:
        """Return a consumer."""
        return self._ask(ConsumerShown, "GET", f"/v1/consumers/{quote(uuid, safe='')}")

    def capacity(self, asked: CapacityAsked | None = None) -> Capacity:
        """Return the sums of all inventories, by class and group, as of one revision."""
        wanted = asdict(asked or CapacityAsked())
        given = {name: value for name, value in wanted.items() if value is not None}
        return self._ask(Capacity, "GET", f"/v1/capacity?{urlencode(given)}")

    def now(self) -> str | None:
        """Return the cursor after every change so far; None: the caller may not watch."""
        try:
            return self._ask(Changes, "GET", "/v1/watch?wait=0&limit=1").next
        except RefusedError as refusal:
            if refusal.status == FORBIDDEN:
                return None
            raise

    def watch(self, after: str | None = None, kinds: Iterable[str] = ()) -> Watch:
        """Follow all changes after a cursor; see `Watch`."""
        return Watch(self._transport, after, kinds)

    def audit(self, target: str | None = None) -> Iterator[AuditEntry]:
        """Yield the audit log (who did what to Moorage itself), newest first.

        `target`: only what was done to it, such as to a pool or a lease.
        """
        cursor: str | None = None
        while True:
            page = self._page(AuditPage, "/v1/audit", cursor, PAGE_MAX, target=target)
            yield from page.entries
            if (cursor := page.next) is None:
                return

    def tokens(self) -> Iterator[Token]:
        """Yield all tokens without their secrets, oldest first."""
        cursor: str | None = None
        while True:
            page = self._page(Tokens, "/v1/tokens", cursor, PAGE_MAX)
            yield from page.tokens
            if (cursor := page.next) is None:
                return

    def token_create(self, wanted: TokenWanted) -> TokenMade:
        """Create a token; only this answer contains its secret."""
        return self._ask(TokenMade, "POST", "/v1/tokens", asdict(wanted))

    def token_revoke(self, token_id: str, *, leases: bool = False) -> None:
        """Revoke a token and end its tickets, with `leases` its leases, too."""
        asked = "?revoke_leases=true" if leases else ""
        self._transport.request("DELETE", f"/v1/tokens/{token_id}{asked}")

    def _page(
        self, kind: type[T], path: str, cursor: str | None, limit: int, **more: str | None
    ) -> T:
        asked = {"limit": str(limit), "cursor": cursor, **more}
        given = {name: value for name, value in asked.items() if value is not None}
        return self._ask(kind, "GET", f"{path}?{urlencode(given)}")

    def _ask(self, kind: type[T], method: str, path: str, body: Any = None) -> T:
        return decode(kind, self._transport.request(method, path, body))


def _provider(uuid: str) -> str:
    return f"/v1/providers/{quote(uuid, safe='')}"
