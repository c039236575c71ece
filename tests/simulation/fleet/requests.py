"""Requests of the simulated consumers, and why they may be refused."""

from moorage.core.errors import Code
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.allocations import ConsumerRequest
from tests.service.fleet.machines import PAGES, part_id

REFUSALS = {
    Code.CAPACITY_EXCEEDED,
    Code.UNITS_VIOLATED,
    Code.INVENTORY_MISSING,
    Code.INVENTORY_UNKNOWN,
    Code.PROVIDER_UNKNOWN,
}
"""Why a claim may be refused."""


def request(consumer: ConsumerId, number: int, pages: int) -> ConsumerRequest:
    """Return the request of a new consumer for pages of a machine."""
    return request_of(consumer, part_id(number), PAGES, pages)


def request_of(
    consumer: ConsumerId, provider: ProviderId, name: str, amount: int
) -> ConsumerRequest:
    """Return the request of a new consumer for units of a class of a provider."""
    wish = {provider: {name: amount}}
    return ConsumerRequest(consumer, wish, "project", "user", "INSTANCE", None)


async def never() -> None:
    """A caller that is gone at once: an answer without a wait."""
