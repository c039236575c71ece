"""Fills a catalog from a snapshot, in pieces."""

from moorage.core.ledger.model import CustomName, Described
from moorage.core.ledger.search.catalog.catalog import Catalog


class Loader:
    """Fills an empty catalog. Do not read the catalog before `finish`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._early: list[Described] = []
        """Providers that were read before the root of their tree."""

    def take(self, providers: list[Described]) -> None:
        """Add some providers."""
        known = self._catalog.places
        here = {provider.uuid for provider, _, _ in providers}
        ready: list[Described] = []
        for one in providers:
            is_early = one[0].root not in here and one[0].root not in known
            (self._early if is_early else ready).append(one)
        self._catalog.fill(ready)

    def finish(self, classes: dict[str, CustomName], traits: dict[str, CustomName]) -> None:
        """Add the providers that were read too early, and the custom classes and traits.

        Raises LookupError if a provider's root is unknown: the rows are corrupt.
        """
        self._catalog.fill(self._early)
        self._catalog.learn(classes, traits)
        self._early = []
