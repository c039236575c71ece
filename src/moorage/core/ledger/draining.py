"""Operators drain a provider: nothing new lands on it or below it until it is resumed.

The provider is withheld, like a machine with a drained agent. So figures, traits and generations
stay the same, even if clients write them later. Allocations stay, and may be written again, shrink
or move between consumers. Machines with agents are drained by their agents. A provider that was
drained before its agent came stays drained until it is resumed.
"""

from collections.abc import Sequence

from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger import withholding
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Provider
from moorage.core.ledger.providers import find, subtree_of
from moorage.core.texts import check_reason

DRAINED = "drained"
"""The reason why a provider is withheld begins so if an operator has drained it."""


def is_drained(provider: Provider) -> bool:
    """Return whether an operator has drained the provider itself, not one above it."""
    withheld = provider.withheld
    return (
        withheld is not None
        and withheld.by == provider.uuid
        and withheld.reason.partition(":")[0] == DRAINED
    )


def drain(facts: Facts, uuid: ProviderId, reason: str) -> Changes:
    """Withhold a provider and all below it.

    Args:
        facts: with its tree.
        uuid: the provider.
        reason: the operator's own words; may be empty.

    Raises PROVIDER_NOT_FOUND, CLASS_MANAGED, INVALID.
    """
    subtree = subtree_of(facts, find(facts, uuid))
    _check_unmanaged(uuid, subtree)
    check_reason(reason)
    return withholding.withhold(facts, subtree, reason_of(reason))


def reason_of(words: str) -> str:
    """Return the reason why a provider is withheld that was drained with these words."""
    return f"{DRAINED}: {words}" if words else DRAINED


def resume(facts: Facts, uuid: ProviderId) -> Changes:
    """Let a drained provider and all below it be offered again, unless one above is withheld.

    What is not drained itself stays as it is; if agents manage it, that is an error.

    Raises PROVIDER_NOT_FOUND, CLASS_MANAGED.
    """
    provider = find(facts, uuid)
    subtree = subtree_of(facts, provider)
    if is_drained(provider):
        return withholding.open_again(facts, subtree)
    _check_unmanaged(uuid, subtree)
    return Changes()


def _check_unmanaged(uuid: ProviderId, subtree: Sequence[Provider]) -> None:
    agents = sorted({one.agent for one in subtree if one.agent is not None})
    if agents:
        raise Error(
            Code.CLASS_MANAGED,
            f"Agent {agents[0]} manages resource provider {uuid}: drain or resume the agent.",
        )
