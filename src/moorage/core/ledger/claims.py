"""Claims: choose where something goes and take it there, in one decision.

What may be chosen is found by the search in the committed fleet, before the batch is loaded; what
is taken is decided on the facts, by the same rules as any other allocation. Within a batch claims
are decided first, so from one claim to the next the room can only shrink.
"""

from collections import deque
from dataclasses import dataclass, field, replace

from msgspec import Struct

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger import allocations
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Allocations
from moorage.core.ledger.requests import Candidate, CandidateQuery, Order
from moorage.core.ledger.search import Fleet, preferring
from moorage.core.ledger.search.steps import Steps
from moorage.core.ledger.search.validation import check_known
from moorage.core.limits import CLAIM_STEPS_MAX

GONE = frozenset(
    {
        Code.PROVIDER_UNKNOWN,
        Code.CLASS_UNKNOWN,
        Code.INVENTORY_MISSING,
        Code.UNITS_VIOLATED,
        Code.CAPACITY_EXCEEDED,
    }
)
"""Refusals that concern one candidate only: the next one may still do."""


class SearchAgain(Exception):
    """Everything that was found has been taken meanwhile: look at the fleet as it is then."""


class Wish(Struct, frozen=True):
    """A consumer that does not exist yet, and what it shall hold somewhere."""

    consumer: ConsumerId
    project_id: str
    user_id: str
    consumer_type: str | None
    query: CandidateQuery
    order: Order = Order()


class Claimed(Struct, frozen=True):
    """What a consumer was given, and which providers serve which group."""

    consumer: ConsumerId
    generation: int
    allocations: Allocations
    mappings: dict[str, tuple[ProviderId, ...]]


@dataclass(slots=True)
class Offer:
    """The candidates that all claims of a batch with the same question choose from.

    `refusal` says why there are none.
    """

    candidates: deque[Candidate] = field(default_factory=deque)
    refusal: Error | None = None

    def providers(self) -> set[ProviderId]:
        """Return whom any candidate would take from."""
        return {uuid for candidate in self.candidates for uuid in candidate.allocations}


def offer_for(fleet: Fleet, query: CandidateQuery, order: Order, wanted: int) -> Steps[Offer]:
    """Search in pieces for up to `wanted` candidates, the preferred ones first.

    The offer refuses with CLASS_UNKNOWN, TRAIT_UNKNOWN, NO_CAPACITY, or SEARCH_INCOMPLETE
    when the search was given up before it had found anything.
    """
    try:
        check_known(fleet, query)
    except Error as refusal:
        return Offer(refusal=refusal.with_traceback(None))
    found = yield from preferring(fleet, query, order, wanted, CLAIM_STEPS_MAX)
    if found.candidates:
        return Offer(deque(found.candidates))
    if found.exhausted:
        return Offer(refusal=Error(Code.NO_CAPACITY, "Nothing has room for all of this now."))
    return Offer(
        refusal=Error(
            Code.SEARCH_INCOMPLETE,
            "The search found nothing before it ran out of steps, or while the fleet kept "
            "changing. Try again, or make the query more specific.",
        )
    )


def take(facts: Facts, now: Instant, wish: Wish, offer: Offer) -> tuple[Changes, Claimed]:
    """Give the wish the first candidate of the offer that still fits.

    What no longer fits is dropped from the offer: it will not fit a later claim of the batch
    either. Whoever packs leaves the candidate where it was, others put it to the end.

    Raises CONSUMER_GENERATION when the consumer exists, the refusal of the offer, and SearchAgain.
    """
    request = ConsumerRequest(
        wish.consumer, {}, wish.project_id, wish.user_id, wish.consumer_type, generation=None
    )
    allocations.check_consumers(facts, [request])
    if offer.refusal is not None:
        raise Error(offer.refusal.code, offer.refusal.message)  # every claim gets its own
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
    raise SearchAgain
