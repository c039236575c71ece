"""Builders for facts in the shape in which the store loads them, for tests of the rules."""

from collections.abc import Iterable

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import AggregateId, ConsumerId, ProviderId
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Allocations, Consumer, CustomName, Inventory, Provider, Tags

THEN = Instant(1_000_000)
NOW = Instant(2_000_000)

CLASSES = frozenset({"VCPU", "MEMORY_MB", "DISK_GB"})
TRAITS = frozenset({"HW_CPU_X86_AVX2", "STORAGE_DISK_SSD"})


def provider_id(n: int) -> ProviderId:
    """Return the n-th provider's UUID."""
    return ProviderId(f"{n:08d}-aaaa-4aaa-8aaa-aaaaaaaaaaaa")


def consumer_id(n: int) -> ConsumerId:
    """Return the n-th consumer's UUID."""
    return ConsumerId(f"{n:08d}-cccc-4ccc-8ccc-cccccccccccc")


def aggregate_id(n: int) -> AggregateId:
    """Return the n-th aggregate's UUID."""
    return AggregateId(f"{n:08d}-dddd-4ddd-8ddd-dddddddddddd")


P1, P2, P3, P4 = (provider_id(n) for n in range(1, 5))
C1, C2, C3 = (consumer_id(n) for n in range(1, 4))


def facts() -> Facts:
    """Return the facts of an empty ledger."""
    return Facts(CLASSES, TRAITS)


def add_provider(
    known: Facts,
    uuid: ProviderId,
    *,
    generation: int = 0,
    parent: ProviderId | None = None,
    name: str | None = None,
    offer: dict[str, Inventory] | None = None,
    **inventories: Inventory,
) -> Provider:
    """Add a provider with its inventories by resource class to the facts."""
    root = uuid if parent is None else known.providers[parent].root
    provider = Provider(uuid, name or f"name-{uuid[:8]}", generation, parent, root, THEN, THEN)
    changes = Changes(providers={uuid: provider})
    for resource_class, inventory in {**(offer or {}), **inventories}.items():
        changes.inventories[uuid, resource_class] = inventory
    known.apply(changes)
    return provider


def add_consumer(
    known: Facts,
    uuid: ConsumerId,
    allocations: Allocations,
    *,
    generation: int = 1,
    consumer_type: str | None = None,
) -> Consumer:
    """Add a consumer to the facts, and raise the used amounts by its allocations."""
    consumer = Consumer(uuid, generation, "project", "user", consumer_type, allocations, THEN, THEN)
    changes = Changes(consumers={uuid: consumer})
    for provider, amounts in allocations.items():
        for name, amount in amounts.items():
            held = known.inventories[provider][name]
            changes.inventories[provider, name] = used(held, held.used + amount)
    known.apply(changes)
    return consumer


def used(inventory: Inventory, amount: int) -> Inventory:
    """Return the inventory with another used amount."""
    return replace(inventory, used=amount)


def add_tags(
    known: Facts, uuid: ProviderId, traits: Iterable[str], aggregates: Iterable[AggregateId] = ()
) -> Tags:
    """Set a provider's traits and aggregates."""
    tags = Tags(frozenset(traits), frozenset(aggregates), THEN)
    known.apply(Changes(tags={uuid: tags}))
    return tags


def add_class(known: Facts, name: str) -> None:
    """Add a custom resource class."""
    known.apply(Changes(classes={name: CustomName(name, THEN, THEN)}))


def add_trait(known: Facts, name: str) -> None:
    """Add a custom trait."""
    known.apply(Changes(traits={name: CustomName(name, THEN, THEN)}))


def request(
    consumer: ConsumerId, allocations: Allocations, generation: int | None = None
) -> ConsumerRequest:
    """Return a consumer's request; with the generation None the consumer must not exist."""
    return ConsumerRequest(
        consumer, allocations, "project", "user", "INSTANCE", generation=generation
    )


class Refused:
    """`with Refused(code) as refusal:` asserts that the body is refused with this code."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.message = ""

    def __enter__(self) -> "Refused":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        assert isinstance(error, Error), f"expected {self.code}, got {error!r}"
        assert error.code is self.code, f"expected {self.code}, got {error.code}: {error}"
        self.message = error.message
        return True
