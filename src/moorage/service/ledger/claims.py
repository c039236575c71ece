"""The claim use case: searches when its batch is formed, allocates when it is decided.

A search on submission would offer capacity that requests of earlier batches then take.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import msgspec

from moorage.core.clock import Instant
from moorage.core.errors import Code
from moorage.core.ledger import claims, vocabulary
from moorage.core.ledger.claims import Claimed, ClaimRequest, OfferedCandidates
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.steps import Steps
from moorage.core.service_time import When
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.use_case import SearchingUseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.store.access.audit import AuditRow

SPARE_CANDIDATES = 8
"""Candidates that are searched for beyond two per claim, in case other requests are faster."""

OFFERED_MAX = 1_000
"""Candidates of one batch that are loaded, shared by its queries; each gets a few in any case."""

QUESTIONS_MAX = 16
"""Different queries that one batch searches for; the others are left to the next batch."""

SEARCH_SECONDS = 0.02
"""Time after which a batch starts no further search, because its other requests wait."""


@dataclass(slots=True)
class Claim(SearchingUseCase[Claimed]):
    """Choose providers for a new consumer and allocate from them. Answer: the allocations.

    Submitting it may also raise OVERLOADED: other requests were faster too many times.

    With a `reason` it leaves an audit row: programs claim all the time, but people say why.
    """

    wish: ClaimRequest
    by: Actor | None = None
    reason: str = ""
    question: bytes = b""
    """The encoded query; claims with the same one share a search."""
    offer: OfferedCandidates = field(default_factory=OfferedCandidates)
    claimed: Claimed = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Encode the query."""
        order = self.wish.order
        self.question = msgspec.msgpack.encode((self.wish.query, order.preference))

    def keys(self) -> Keys:
        """Name the consumer, the providers of all candidates, and the custom classes."""
        words = (name for group in self.wish.query.groups for name in group.resources)
        return Keys(
            LedgerKeys(
                consumers={self.wish.consumer},
                providers=self.offer.providers(),
                classes=vocabulary.customs(words),
            )
        )

    def decide(self, world: World, when: When) -> Changes:
        """Allocate the first candidate that still fits. Raises Restart if none does."""
        made, self.claimed = claims.take(world.ledger, when.stamp, self.wish, self.offer)
        return Changes(ledger=made)

    def audit(self, now: Instant) -> list[AuditRow]:
        """Return a row with the allocations and the reason, if there is one."""
        if self.by is None or not self.reason:
            return []
        wish, made = self.wish, self.claimed
        after = {
            "project": wish.project_id,
            "user": wish.user_id,
            "type": wish.consumer_type,
            "allocations": made.allocations,
            "reason": self.reason,
        }
        return [audit_entry(now, self.by, "consumer.claim", made.consumer, None, after)]

    def conclude(self, world: World, when: When) -> Claimed:
        """Return the allocations."""
        return self.claimed

    @staticmethod
    def prepare(
        batch: Sequence[SearchingUseCase[Any]], catalog: Catalog, given_up: Callable[[bytes], None]
    ) -> Steps[list[SearchingUseCase[Any]]]:
        """Find candidates for the claims of a batch, with one search per query.

        Returns the claims that the batch has no time to search for. The first query is searched
        for in any case.
        """
        asking: dict[bytes, list[Claim]] = {}
        for claim in batch:
            assert isinstance(claim, Claim)
            asking.setdefault(claim.question, []).append(claim)
        end = perf_counter() + SEARCH_SECONDS
        postponed: list[SearchingUseCase[Any]] = []
        for number, alike in enumerate(asking.values()):
            if number and (number >= QUESTIONS_MAX or perf_counter() >= end):
                postponed += alike
                continue
            wish = alike[0].wish
            share = max(SPARE_CANDIDATES, OFFERED_MAX // min(len(asking), QUESTIONS_MAX))
            wanted = min(2 * len(alike) + SPARE_CANDIDATES, share)
            offer = yield from claims.offer_for(catalog, wish.query, wish.order, wanted)
            if offer.refusal is not None and offer.refusal.code is Code.SEARCH_INCOMPLETE:
                given_up(msgspec.json.encode(wish.query))
            for claim in alike:
                claim.offer = offer
            yield
        return postponed
