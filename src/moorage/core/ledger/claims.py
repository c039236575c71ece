"""Claims: choose providers and allocate from them, in one decision.

The search finds candidates in the committed catalog, before the batch is loaded; the allocation is
decided on the facts, by the same rules as any other one. Within a batch claims are decided first,
so free capacity only shrinks from one claim to the next.
"""

from collections import deque
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger import allocations
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Allocations
from moorage.core.ledger.requests import Candidate, CandidateOrder, CandidateQuery
from moorage.core.ledger.search import Catalog, preferring
from moorage.core.ledger.search.steps import Steps
from moorage.core.ledger.search.validation import check_known
from moorage.core.limits import CLAIM_STEPS_MAX
from moorage.core.restart import Restart

GONE = frozenset(
    {
        Code.PROVIDER_UNKNOWN,
        Code.CLASS_UNKNOWN,
        Code.INVENTORY_MISSING,
        Code.UNITS_VIOLATED,
        Code.CAPACITY_EXCEEDED,
    }
)
"""Refusals that concern only one candidate: the next one may still fit."""


class CandidatesNeeded(Struct, frozen=True):
    """All candidates have been taken meanwhile: search the catalog again after the commit."""


class ClaimRequest(Struct, frozen=True):
    """A consumer that does not exist yet, and the query for its allocations."""

    consumer: ConsumerId
    project_id: str
    user_id: str
    consumer_type: str | None
    query: CandidateQuery
    order: CandidateOrder = CandidateOrder()


class Claimed(Struct, frozen=True):
    """A consumer's new allocations, and which providers serve which group."""

    consumer: ConsumerId
    generation: int
    allocations: Allocations
    mappings: dict[str, tuple[ProviderId, ...]]


@dataclass(slots=True)
class OfferedCandidates:
    """The candidates for all claims of a batch with the same query.

    `refusal`: why there are none.
    """

    candidates: deque[Candidate] = field(default_factory=deque)
    refusal: Error | None = None

    def providers(self) -> set[ProviderId]:
        """Return the providers of all candidates."""
        return {uuid for candidate in self.candidates for uuid in candidate.allocations}


def offer_for(
    catalog: Catalog, query: CandidateQuery, order: CandidateOrder, wanted: int
) -> Steps[OfferedCandidates]:
    """Search in pieces for up to `wanted` candidates, the preferred ones first.

    The offer's refusal is CLASS_UNKNOWN, TRAIT_UNKNOWN, NO_CAPACITY, or SEARCH_INCOMPLETE if the
    search reached its bound before it found anything.
    """
    try:
        check_known(catalog, query)
    except Error as refusal:
        return OfferedCandidates(refusal=refusal.with_traceback(None))
    found = yield from preferring(catalog, query, order, wanted, CLAIM_STEPS_MAX)
    if found.candidates:
        return OfferedCandidates(deque(found.candidates))
    if found.exhausted:
        return OfferedCandidates(
            refusal=Error(Code.NO_CAPACITY, "No providers have room for all of this now.")
        )
    return OfferedCandidates(
        refusal=Error(
            Code.SEARCH_INCOMPLETE,
            "The search found nothing before it ran out of steps, or while the catalog kept "
            "changing. Try again, or make the query more specific.",
        )
    )


def take(
    facts: Facts, now: Instant, wish: ClaimRequest, offer: OfferedCandidates
) -> tuple[Changes, Claimed]:
    """Allocate the first candidate of the offer that still fits.

    Candidates that no longer fit are dropped from the offer: they will not fit later claims of the
    batch either. With `pack` the used candidate stays first, otherwise it goes to the end.

    Raises CONSUMER_GENERATION if the consumer exists, the refusal of the offer, and Restart with
    CandidatesNeeded.
    """
    request = ConsumerRequest(
        wish.consumer, {}, wish.project_id, wish.user_id, wish.consumer_type, generation=None
    )
    allocations.check_consumers(facts, [request])
    if offer.refusal is not None:
        raise Error(offer.refusal.code, offer.refusal.message)  # a new exception for every claim
    while offer.candidates:
        candidate = offer.candidates[0]
        asked = replace(request, allocations=candidate.allocations)
        try:
            changes = allocations.replace_for(facts, now, [asked])
        except Error as error:
            if error.code not in GONE:
                raise
            offer.candidates.popleft()
            continue
        if wish.order.preference != "pack":
            offer.candidates.rotate(-1)
        made = changes.consumers[wish.consumer]
        assert made is not None
        return changes, Claimed(made.uuid, made.generation, made.allocations, candidate.mappings)
    raise Restart(CandidatesNeeded())
