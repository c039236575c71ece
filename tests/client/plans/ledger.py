"""What the ledger shows, for tests of plans."""

from datetime import UTC, datetime

from moorage.wire.providers import Allocated, ConsumerShown, InventoryShown, ProviderShown

THEN = datetime(2026, 1, 1, tzinfo=UTC)


def uuid(number: int) -> str:
    """Return a UUID."""
    return f"00000000-0000-4000-8000-{number:012}"


HOST, GPU0, GPU1, OTHER = (uuid(n) for n in range(1, 5))
ANN, BEN, CAT = (uuid(n) for n in range(101, 104))


def stock(total: int, used: int = 0, reserved: int = 0, ratio: float = 1.0) -> InventoryShown:
    """Return an inventory."""
    return InventoryShown(
        total=total,
        reserved=reserved,
        min_unit=1,
        max_unit=total,
        step_size=1,
        allocation_ratio=ratio,
        offered=None,
        used=used,
        capacity=0,
        free=0,
    )


def provider(
    own: str,
    name: str,
    parent: str | None = None,
    root: str | None = None,
    traits: tuple[str, ...] = (),
    aggregates: tuple[str, ...] = (),
    **inventories: InventoryShown,
) -> ProviderShown:
    """Return a provider."""
    return ProviderShown(
        uuid=own,
        name=name,
        generation=1,
        parent=parent,
        root=root or parent or own,
        inventories=inventories,
        traits=[*traits],
        aggregates=[*aggregates],
        reported={},
        agent=None,
        withheld=None,
        created_at=THEN,
        updated_at=THEN,
    )


def consumer(own: str, **held: dict[str, int]) -> ConsumerShown:
    """Return a consumer that holds amounts by the name of a constant of this module."""
    return ConsumerShown(
        uuid=own,
        generation=1,
        project="shop",
        user="alice",
        type="INSTANCE",
        allocations=[
            Allocated(provider=globals()[name], name=name, resources=amounts)
            for name, amounts in held.items()
        ],
        created_at=THEN,
        updated_at=THEN,
    )
