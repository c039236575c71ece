"""Rows that cannot be kept are refused with a code, and nothing of their request is kept."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import AggregateId, ConsumerId, ProviderId
from moorage.core.ledger.import_mark import Beginning
from moorage.core.ledger.imported_rows import ProviderImage, Rows
from moorage.core.ledger.model import Consumer, CustomName, Inventory
from moorage.core.limits import AGGREGATES_MAX, IMPORT_NAMES_MAX, MAX_INT
from tests.service.ledger.imports.ledgers import listed
from tests.service.running import TESTER, consumer_id, provider_id, running

AT = Instant(1_600_000_000 * SECOND)


def host(n: int = 1, **changes: Any) -> ProviderImage:
    """Return a provider with some VCPUs."""
    image = ProviderImage(
        uuid=provider_id(n),
        name=f"host {n}",
        generation=1,
        parent=None,
        created_at=AT,
        updated_at=AT,
        inventories={"VCPU": Inventory(4), "CUSTOM_A": Inventory(1)},
        traits=frozenset(),
        aggregates=frozenset(),
    )
    return structs.replace(image, **changes)


def guest(n: int = 1, **changes: Any) -> Consumer:
    """Return a consumer of the first provider."""
    held = {provider_id(1): {"VCPU": 9}}
    consumer = Consumer(consumer_id(n), 1, "project", "user", "INSTANCE", held, AT, AT)
    return structs.replace(consumer, **changes)


def providers(*images: ProviderImage) -> Rows:
    """Return these providers as rows."""
    return Rows(providers={one.uuid: one for one in images})


def consumers(*those: Consumer) -> Rows:
    """Return these consumers as rows."""
    return Rows(consumers={one.uuid: one for one in those})


def vcpus(**figures: Any) -> Rows:
    """Return the second provider with an inventory of these figures."""
    return providers(host(2, inventories={"VCPU": Inventory(**{"total": 1, **figures})}))


ONE, TWO, THREE = provider_id(1), provider_id(2), provider_id(3)
UUIDS = [AggregateId(provider_id(n)) for n in range(1_000, 1_001 + AGGREGATES_MAX)]

MANY = {ONE: {f"CUSTOM_{n}": 1 for n in range(IMPORT_NAMES_MAX // 5)}}

REFUSED: dict[str, tuple[Code, Rows]] = {
    "a parent that is missing": (Code.PARENT_UNKNOWN, providers(host(2, parent=THREE))),
    "its own parent": (Code.TREE_LOOP, providers(host(2, parent=TWO))),
    "a cycle": (Code.TREE_LOOP, providers(host(2, parent=THREE), host(3, parent=TWO))),
    "a cycle with what is there": (Code.TREE_LOOP, providers(host(1, parent=provider_id(4)))),
    "a name twice": (Code.DUPLICATE_PROVIDER, providers(host(2), host(3, name="host 2"))),
    "a name that is taken": (Code.DUPLICATE_PROVIDER, providers(host(2, name="host 1"))),
    "no name": (Code.INVALID, providers(host(2, name=""))),
    "a long name": (Code.INVALID, providers(host(2, name="n" * 201))),
    "a class that is missing": (
        Code.CLASS_UNKNOWN,
        providers(host(2, inventories={"CUSTOM_B": Inventory(1)})),
    ),
    "a trait that is missing": (
        Code.TRAIT_UNKNOWN,
        providers(host(2, traits=frozenset({"HW_UNKNOWN"}))),
    ),
    "too many aggregates": (
        Code.LIMIT_EXCEEDED,
        providers(host(2, aggregates=frozenset(UUIDS))),
    ),
    "a negative generation": (Code.INVALID, providers(host(2, generation=-1))),
    "a negative total": (Code.INVALID, vcpus(total=-1)),
    "a large total": (Code.INVALID, vcpus(total=MAX_INT + 1)),
    "no step": (Code.INVALID, vcpus(step_size=0)),
    "an infinite ratio": (Code.INVALID, vcpus(allocation_ratio=float("inf"))),
    "no ratio": (Code.INVALID, vcpus(allocation_ratio=float("nan"))),
    "inventory in use": (Code.INVENTORY_IN_USE, providers(host(1, inventories={}))),
    "a provider in use": (
        Code.PROVIDER_IN_USE,
        Rows(gone_providers=frozenset({ONE, provider_id(4)})),
    ),
    "a parent": (
        Code.PROVIDER_HAS_CHILDREN,
        Rows(gone_providers=frozenset({ONE}), gone_consumers=frozenset({consumer_id(1)})),
    ),
    "a class in use": (Code.CLASS_IN_USE, Rows(gone_classes=frozenset({"CUSTOM_A"}))),
    "a trait in use": (Code.TRAIT_IN_USE, Rows(gone_traits=frozenset({"CUSTOM_T"}))),
    "a standard name": (Code.INVALID, Rows(classes={"VCPU": CustomName("VCPU", AT, AT)})),
    "a provider that is missing": (
        Code.PROVIDER_UNKNOWN,
        consumers(guest(2, allocations={THREE: {"VCPU": 1}})),
    ),
    "a provider that goes": (
        Code.PROVIDER_UNKNOWN,
        Rows(
            consumers={consumer_id(2): guest(2, allocations={provider_id(4): {"VCPU": 1}})},
            gone_providers=frozenset({provider_id(4)}),
        ),
    ),
    "an inventory that is missing": (
        Code.INVENTORY_UNKNOWN,
        consumers(guest(2, allocations={ONE: {"DISK_GB": 1}})),
    ),
    "nothing allocated": (Code.INVALID, consumers(guest(2, allocations={}))),
    "nothing of a provider": (Code.INVALID, consumers(guest(2, allocations={ONE: {}}))),
    "an amount of zero": (Code.INVALID, consumers(guest(2, allocations={ONE: {"VCPU": 0}}))),
    "a large amount": (
        Code.INVALID,
        consumers(guest(2, allocations={ONE: {"VCPU": MAX_INT + 1}})),
    ),
    "an invalid type": (Code.INVALID, consumers(guest(2, consumer_type="instance"))),
    "a long project": (Code.INVALID, consumers(guest(2, project_id="p" * 256))),
    "too many names": (
        Code.LIMIT_EXCEEDED,
        consumers(*(guest(n, allocations=MANY) for n in range(2, 8))),
    ),
}

ACCEPTED: dict[str, Callable[[], Rows]] = {
    "names that are exchanged": lambda: providers(
        host(1, name="host 4"), host(4, name="host 1", parent=ONE, traits=frozenset({"CUSTOM_T"}))
    ),
    "a tree upside down": lambda: providers(
        host(1, parent=provider_id(4)), host(4, traits=frozenset({"CUSTOM_T"}))
    ),
    "a consumer that moves from what is gone, which leaves its name": lambda: Rows(
        providers={TWO: host(2, name="host 1"), provider_id(4): host(4)},
        consumers={consumer_id(1): guest(1, allocations={TWO: {"VCPU": 1}})},
        gone_providers=frozenset({ONE}),
    ),
    "a class and a trait that are no longer used": lambda: Rows(
        providers={
            ONE: host(1, inventories={"VCPU": Inventory(4)}),
            provider_id(4): host(4, parent=ONE, inventories={}),
        },
        gone_classes=frozenset({"CUSTOM_A"}),
        gone_traits=frozenset({"CUSTOM_T"}),
    ),
    "what is not there is gone": lambda: Rows(
        gone_providers=frozenset({THREE}),
        gone_consumers=frozenset({consumer_id(9)}),
        gone_classes=frozenset({"CUSTOM_NONE", "VCPU"}),
        gone_traits=frozenset({"CUSTOM_NONE"}),
    ),
    "over capacity, generation 0, no project": lambda: consumers(
        guest(2, generation=0, project_id="", user_id="", allocations={ONE: {"CUSTOM_A": MAX_INT}})
    ),
}


def test_rows_that_cannot_be_kept(tmp_path: Path) -> None:
    """Each is refused with its code, and leaves everything as it was."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            imports = one.service.imports
            await imports.begin(Beginning("a source"), TESTER)
            await imports.write(there())
            before = await listed(one.service)
            for what, (code, rows) in REFUSED.items():
                with pytest.raises(Error) as caught:
                    await imports.write(rows)
                assert caught.value.code is code, (what, caught.value.message)
                assert await listed(one.service) == before, what
            assert one.service.transactor.counters.failed == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("what", ACCEPTED)
def test_only_the_result_must_be_consistent(tmp_path: Path, what: str) -> None:
    """Rows that fit together are written, in whatever order they would have to be."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await one.service.imports.begin(Beginning("a source"), TESTER)
            await one.service.imports.write(there())
            rows = ACCEPTED[what]()
            await one.service.imports.write(rows)
            kept = await listed(one.service)
            for uuid, image in rows.providers.items():
                assert kept.providers[uuid] == image
            for key, consumer in rows.consumers.items():
                assert kept.consumers[key] == consumer
            assert not rows.gone_providers & kept.providers.keys()
            assert not rows.gone_classes & kept.classes.keys()
            assert not rows.gone_traits & kept.traits.keys()

    asyncio.run(scenario())


def there() -> Rows:
    """Return what the ledger has: a provider with a child and a consumer over its capacity."""
    return Rows(
        classes={"CUSTOM_A": CustomName("CUSTOM_A", AT, AT)},
        traits={"CUSTOM_T": CustomName("CUSTOM_T", AT, AT)},
        providers={
            ONE: host(1),
            ProviderId(provider_id(4)): host(4, parent=ONE, traits=frozenset({"CUSTOM_T"})),
        },
        consumers={ConsumerId(consumer_id(1)): guest(1)},
    )
