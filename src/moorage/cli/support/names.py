"""Providers and consumers on the command line: the exact name, or the beginning of the UUID."""

from moorage.cli.support.ids import NAMED_MAX, only
from moorage.cli.support.output import NOT_FOUND, Failure
from moorage.client.ledger import Ledger
from moorage.core.ids import is_normal, is_prefix
from moorage.wire.providers import ConsumersAsked, ConsumerShown, ProviderShown


def provider(ledger: Ledger, text: str) -> ProviderShown:
    """Return the provider with this name, or else the only one whose UUID begins so.

    Raises Failure: 7, there is none; 2, several begin so.
    """
    if named := ledger.providers_named(text):
        return named[0]
    wanted = text.lower()
    found = ledger.providers_with(wanted, NAMED_MAX + 1) if is_prefix(wanted) else []
    if not found:
        raise Failure(
            NOT_FOUND,
            f"there is no provider with the name '{text}', and none whose UUID begins so"
            " (at least 8 characters)",
            "provider_not_found",
        )
    uuid = only(text, [(one.uuid, one.name) for one in found])
    return next(one for one in found if one.uuid == uuid)


def consumer(ledger: Ledger, text: str) -> ConsumerShown:
    """Return the only consumer whose UUID begins so. Raises Failure: 7, 2."""
    wanted = text.lower()
    if is_normal(wanted):
        return ledger.consumer(wanted)
    found: list[ConsumerShown] = []
    if is_prefix(wanted):
        for one in ledger.consumers(ConsumersAsked(id_prefix=wanted)):
            found.append(one)
            if len(found) > NAMED_MAX:
                break
    if not found:
        raise Failure(
            NOT_FOUND,
            f"there is no consumer whose UUID begins with '{text}' (at least 8 characters)",
            "allocations_not_found",
        )
    uuid = only(text, [(one.uuid, one.type or "-") for one in found])
    return next(one for one in found if one.uuid == uuid)
