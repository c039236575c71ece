"""Compact inventories: figures that many providers have in common are stored once.

Hosts of one kind offer the same totals, unit sizes and ratios. They differ in their usage and in
two times; these figures are packed into bytes instead of objects.
"""

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from struct import Struct
from typing import Any, NamedTuple

from msgspec.structs import astuple

from moorage.core.ledger.capacity import capacity_of, divisor, shown_capacity
from moorage.core.ledger.model import Inventory

Common = tuple[int, int, int, int, int, float, int | None, bool]
"""The figures of an inventory that rarely change, in the order of the model."""


class InventoryFigures(NamedTuple):
    """The figures of an inventory that rarely change, and derived ones. Often shared."""

    name: str
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    offered: int | None
    withheld: bool
    capacity: float
    units: int
    """The capacity in whole units."""
    divisor: float
    """Fullness is the used units divided by this."""
    common: "Common"
    """The figures of the model, for comparison."""

    @classmethod
    def of(cls, name: str, inventory: Inventory) -> "InventoryFigures":
        """Return the offer of an inventory of a class."""
        whole = capacity_of(inventory)
        shared: Common = astuple(inventory)[:-OWN]
        return cls(name, *shared, whole, shown_capacity(inventory), divisor(whole), shared)


SHARED_MAX = 100_000
"""Offers, and combinations of offers, that are cached so that providers can share them."""

OWN = 3
"""Figures that are separate for each inventory, the last ones of the model: used, created_at,
updated_at."""

OWN_FORM = Struct(f"={OWN}q")
"""The form of the own figures of one inventory."""

_PACKERS = [Struct(f"={OWN * count}q") for count in range(64)]


def _packer(count: int) -> Struct:
    """Return the packer of the own figures of this many inventories."""
    return _PACKERS[count] if count < len(_PACKERS) else Struct(f"={OWN * count}q")


class Inventories(Mapping[str, Inventory]):
    """The inventories of one provider by resource class. Immutable; each read makes new values."""

    __slots__ = ("figures", "offers")

    def __init__(self, offers: tuple[InventoryFigures, ...] = (), figures: bytes = b"") -> None:
        self.offers = offers
        self.figures = figures

    def own_figures(self) -> tuple[Any, ...]:
        """Return used, created_at and updated_at of each inventory in turn."""
        return _packer(len(self.offers)).unpack(self.figures)

    def unpacked(self) -> dict[str, Inventory]:
        """Return them as a new dict."""
        own = self.own_figures()
        return {
            offer.name: Inventory(*offer.common, *own[OWN * number : OWN * number + OWN])
            for number, offer in enumerate(self.offers)
        }

    def __getitem__(self, name: str) -> Inventory:
        for number, offer in enumerate(self.offers):
            if offer[0] == name:
                own = self.own_figures()[OWN * number : OWN * number + OWN]
                return Inventory(*offer.common, *own)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(offer[0] == name for offer in self.offers)

    def __iter__(self) -> Iterator[str]:
        return (offer[0] for offer in self.offers)

    def __len__(self) -> int:
        return len(self.offers)

    def items(self) -> ItemsView[str, Inventory]:
        """Return the pairs of class and inventory."""
        return self.unpacked().items()

    def values(self) -> ValuesView[Inventory]:
        """Return the inventories."""
        return self.unpacked().values()

    def __repr__(self) -> str:
        return repr(self.unpacked())


NO_INVENTORIES = Inventories()


class InventoryPacker:
    """Packs inventories, and caches what several of them have in common."""

    def __init__(self) -> None:
        self._offers: dict[tuple[Any, ...], InventoryFigures] = {}
        self._combinations: dict[tuple[Any, ...], tuple[InventoryFigures, ...]] = {}

    def packed(self, inventories: Mapping[str, Inventory]) -> Inventories:
        """Return the same inventories, packed."""
        if not inventories:
            return NO_INVENTORIES
        if len(self._offers) > SHARED_MAX or len(self._combinations) > SHARED_MAX:
            self._offers.clear()
            self._combinations.clear()
        figures = [astuple(inventory) for inventory in inventories.values()]
        # One look-up for all classes: providers of one kind are alike in everything but `OWN`.
        key = (*inventories, *[each[:-OWN] for each in figures])
        offers = self._combinations.get(key)
        if offers is None:
            offers = self._combinations[key] = self._combined(inventories)
        own = [number for each in figures for number in each[-OWN:]]
        return Inventories(offers, _packer(len(offers)).pack(*own))

    def _combined(self, inventories: Mapping[str, Inventory]) -> tuple[InventoryFigures, ...]:
        """Return the offers of these inventories, with those of other combinations shared."""
        offers = []
        for name, inventory in inventories.items():
            shared = (name, *astuple(inventory)[:-OWN])
            if shared not in self._offers:
                self._offers[shared] = InventoryFigures.of(name, inventory)
            offers.append(self._offers[shared])
        return tuple(offers)

    def renamed(self, held: Inventories, old: str, new: str) -> Inventories:
        """Return the same inventories with class `old` renamed to `new`."""
        return self.packed(
            {new if name == old else name: each for name, each in held.unpacked().items()}
        )
