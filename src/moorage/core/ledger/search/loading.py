"""A fleet that is filled from a snapshot, piece by piece."""

from moorage.core.ledger.model import Described, Vocable
from moorage.core.ledger.search.fleet import Fleet


class Loader:
    """Fills an empty fleet. Do not read the fleet before `finish`."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._early: list[Described] = []
        """Providers that came before the root of their tree."""

    def take(self, providers: list[Described]) -> None:
        """Add some providers."""
        known = self._fleet.places
        here = {provider.uuid for provider, _, _ in providers}
        ready: list[Described] = []
        for one in providers:
            is_early = one[0].root not in here and one[0].root not in known
            (self._early if is_early else ready).append(one)
        self._fleet.fill(ready)

    def finish(self, classes: dict[str, Vocable], traits: dict[str, Vocable]) -> None:
        """Add the providers that came too early, and the custom classes and traits.

        Raises LookupError when a provider's root is unknown: the rows are corrupt.
        """
        self._fleet.fill(self._early)
        self._fleet.learn(classes, traits)
        self._early = []
