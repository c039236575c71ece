"""Withheld providers: nothing of them is offered, whatever their inventories say.

A provider inherits this from its parent, so what is created in a withheld tree, or moved into it,
is withheld, too. Neither generations nor times change: nobody's view of a provider becomes stale.
Source: decision 0025.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Provider, Withheld


def withhold(facts: Facts, subtree: Sequence[Provider], reason: str) -> Changes:
    """Withhold a provider and all below it. Providers that are already withheld keep their reason.

    Args:
        facts: with the inventories of all of them.
        subtree: the provider first.
        reason: for operators.
    """
    top = subtree[0]
    return _inherit(facts, subtree, _own(subtree) - {top.uuid}, Withheld(reason, top.uuid))


def open_again(facts: Facts, subtree: Sequence[Provider]) -> Changes:
    """Let a provider and all below it be withheld only if its parent is."""
    top = subtree[0]
    above = None if top.parent is None else facts.providers[top.parent].withheld
    return _inherit(facts, subtree, _own(subtree) - {top.uuid}, above)


def moved(facts: Facts, subtree: Sequence[Provider], above: Provider | None) -> Changes:
    """Return the changes of a subtree that comes below `above`: what is new there is inherited.

    What a member of the subtree withholds itself stays so.
    """
    return _inherit(facts, subtree, _own(subtree), None if above is None else above.withheld)


def _own(subtree: Sequence[Provider]) -> set[ProviderId]:
    """Return the members of a subtree at which something of it begins to be withheld."""
    members = {member.uuid for member in subtree}
    return {member.withheld.by for member in subtree if member.withheld is not None} & members


def _inherit(
    facts: Facts, subtree: Sequence[Provider], own: set[ProviderId], above: Withheld | None
) -> Changes:
    changes = Changes()
    for member in subtree:
        if member.withheld is None or member.withheld.by not in own:
            changes.update(_withheld(facts, member, above))
    return changes


def _withheld(facts: Facts, provider: Provider, withheld: Withheld | None) -> Changes:
    """Return the changes of one provider and its inventories; empty if there are none."""
    changes = Changes()
    if provider.withheld != withheld:
        changes.providers[provider.uuid] = replace(provider, withheld=withheld)
    closed = withheld is not None
    for name, inventory in facts.inventories_of(provider.uuid).items():
        if inventory.withheld != closed:
            changes.inventories[provider.uuid, name] = replace(inventory, withheld=closed)
    return changes
