"""Requests of one batch: each sees the changes of the earlier ones."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moorage.core.errors import Code
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.inventory import InventorySpec
from moorage.service.ledger import allocation_cases, provider_cases, vocabulary_cases
from tests.service.running import Running, claim, consumer_id, provider_id, running

P1, P2, P3, P4 = (provider_id(n) for n in range(1, 5))
SSD = frozenset({"STORAGE_DISK_SSD"})
OWN = frozenset({"CUSTOM_T"})
DONE = "done"


def rename(uuid: Any, name: str) -> provider_cases.ProviderUpdate:
    """Rename a provider."""
    return provider_cases.ProviderUpdate(uuid, name)


def move(uuid: Any, parent: Any) -> provider_cases.ProviderUpdate:
    """Move a provider, which has its original name, below another parent."""
    return provider_cases.ProviderUpdate(
        uuid, f"name-{int(uuid[:8])}", move=True, parent=parent, free=True
    )


SETUP: list[Any] = [
    *(provider_cases.ProviderCreate(uuid, f"name-{n}") for n, uuid in enumerate((P1, P2, P3), 1)),
    provider_cases.ProviderCreate(provider_id(5), f"/{P2}/"),
    vocabulary_cases.ClassCreate("CUSTOM_C"),
    vocabulary_cases.TraitEnsure("CUSTOM_T"),
    provider_cases.InventoriesReplace(
        P1, 0, {"CUSTOM_C": InventorySpec(4), "VCPU": InventorySpec(4)}
    ),
    provider_cases.TraitsReplace(P2, 0, OWN),
    claim(9, P1, VCPU=1),
]

CASES: dict[str, list[tuple[Any, Any]]] = {
    "two providers exchange their names": [
        (rename(P1, "between"), DONE),
        (rename(P2, "name-1"), DONE),
        (rename(P1, "name-2"), DONE),
    ],
    "a name is free as soon as it was given up": [
        (rename(P1, "name-2"), Code.DUPLICATE_PROVIDER),
        (rename(P2, "other"), DONE),
        (rename(P1, "name-2"), DONE),
        (provider_cases.ProviderCreate(P4, "name-1"), DONE),
    ],
    "names are handed on along a row": [
        (rename(P3, "name-4"), DONE),
        (rename(P2, "name-3"), DONE),
        (rename(P1, "name-2"), DONE),
        (provider_cases.ProviderCreate(P4, "name-1"), DONE),
    ],
    "two are renamed beside one called like the names that are lent meanwhile": [
        (rename(P1, "one"), DONE),
        (rename(P2, "two"), DONE),
    ],
    "a removed provider's name and uuid are free": [
        (provider_cases.ProviderDelete(P2), DONE),
        (provider_cases.ProviderCreate(P4, "name-2"), DONE),
        (provider_cases.ProviderCreate(P2, "again", P4), DONE),
        (vocabulary_cases.TraitDelete("CUSTOM_T"), DONE),
    ],
    "a provider comes and goes": [
        (provider_cases.ProviderCreate(P4, "name-4", P1), DONE),
        (provider_cases.InventoryCreate(P4, "VCPU", InventorySpec(1)), DONE),
        (provider_cases.ProviderDelete(P1), Code.PROVIDER_HAS_CHILDREN),
        (provider_cases.ProviderDelete(P4), DONE),
        (provider_cases.ProviderDelete(P1), Code.PROVIDER_IN_USE),
        (allocation_cases.AllocationsDelete(consumer_id(9)), DONE),
        (provider_cases.ProviderDelete(P1), DONE),
    ],
    "a class is in use as soon as it is offered": [
        (vocabulary_cases.ClassCreate("CUSTOM_NEW"), DONE),
        (provider_cases.InventoryCreate(P2, "CUSTOM_NEW", InventorySpec(1)), DONE),
        (vocabulary_cases.ClassDelete("CUSTOM_NEW"), Code.CLASS_IN_USE),
        (provider_cases.InventoryDelete(P2, "CUSTOM_NEW"), DONE),
        (vocabulary_cases.ClassDelete("CUSTOM_NEW"), DONE),
        (provider_cases.InventoryCreate(P2, "CUSTOM_NEW", InventorySpec(1)), Code.CLASS_UNKNOWN),
    ],
    "a class is free when its last inventory goes": [
        (vocabulary_cases.ClassDelete("CUSTOM_C"), Code.CLASS_IN_USE),
        (provider_cases.InventoriesReplace(P1, 2, {"VCPU": InventorySpec(4)}), DONE),
        (vocabulary_cases.ClassDelete("CUSTOM_C"), DONE),
        (vocabulary_cases.ClassCreate("CUSTOM_C"), DONE),
    ],
    "a trait is in use as soon as it is given": [
        (vocabulary_cases.TraitDelete("CUSTOM_T"), Code.TRAIT_IN_USE),
        (provider_cases.TraitsDelete(P2), DONE),
        (provider_cases.TraitsReplace(P3, 0, OWN), DONE),
        (vocabulary_cases.TraitDelete("CUSTOM_T"), Code.TRAIT_IN_USE),
        (provider_cases.TraitsReplace(P3, 1, SSD), DONE),
        (vocabulary_cases.TraitDelete("CUSTOM_T"), DONE),
        (provider_cases.TraitsReplace(P3, 2, OWN), Code.TRAIT_UNKNOWN),
    ],
    "a removed provider gives its traits back": [
        (provider_cases.ProviderDelete(P2), DONE),
        (vocabulary_cases.TraitDelete("CUSTOM_T"), DONE),
    ],
    "trees move on top of each other": [
        (move(P2, P1), DONE),
        (move(P3, P2), DONE),
        (move(P1, P3), Code.TREE_LOOP),
        (move(P2, None), DONE),
        (move(P1, P3), DONE),
        (provider_cases.ProviderCreate(P4, "name-4", P1), DONE),
        (move(P2, P4), Code.TREE_LOOP),
    ],
    "what one gives back the next may take": [
        (claim(1, P1, VCPU=4), Code.CAPACITY_EXCEEDED),
        (claim(1, P1, VCPU=3), DONE),
        (claim(2, P1, VCPU=1), Code.CAPACITY_EXCEEDED),
        (allocation_cases.AllocationsDelete(consumer_id(9)), DONE),
        (claim(2, P1, VCPU=1), DONE),
        (claim(1, P1, generation=1, VCPU=1), DONE),
        (claim(3, P1, VCPU=2), DONE),
    ],
    "a consumer ends and begins anew": [
        (claim(9, P1, generation=1, VCPU=2), DONE),
        (allocation_cases.AllocationsDelete(consumer_id(9)), DONE),
        (claim(9, P1, generation=2, VCPU=1), Code.CONSUMER_GENERATION),
        (claim(9, P1, CUSTOM_C=1), DONE),
        (claim(9, P1, generation=1, VCPU=1), DONE),
    ],
    "an inventory goes when its last allocation does": [
        (provider_cases.InventoryDelete(P1, "VCPU"), Code.INVENTORY_IN_USE),
        (allocation_cases.AllocationsDelete(consumer_id(9)), DONE),
        (provider_cases.InventoryDelete(P1, "VCPU"), DONE),
        (claim(9, P1, VCPU=1), Code.INVENTORY_MISSING),
        (provider_cases.InventoryCreate(P1, "VCPU", InventorySpec(1)), DONE),
        (claim(9, P1, VCPU=1), DONE),
    ],
    "a reshape moves what was just claimed": [
        (claim(1, P1, VCPU=2), DONE),
        (
            allocation_cases.Reshape(
                {P1: (3, {"CUSTOM_C": InventorySpec(4)}), P2: (1, {"VCPU": InventorySpec(4)})},
                [],
            ),
            Code.INVENTORY_IN_USE,
        ),
        (
            allocation_cases.Reshape(
                {P1: (3, {"CUSTOM_C": InventorySpec(4)}), P3: (0, {"VCPU": InventorySpec(4)})},
                [
                    ConsumerRequest(consumer_id(n), {P3: {"VCPU": amount}}, "p", "u", None, 1)
                    for n, amount in ((1, 2), (9, 1))
                ],
            ),
            DONE,
        ),
        (claim(2, P3, VCPU=2), Code.CAPACITY_EXCEEDED),
        (claim(2, P3, VCPU=1), DONE),
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_batch(tmp_path: Path, case: str) -> None:
    """Simultaneous requests share one batch and are decided in the order of arrival."""
    steps = CASES[case]

    async def scenario(one: Running) -> None:
        for command in SETUP:
            await one.submit(command)
        before = one.engine.transactions
        answers = await one.outcomes(*(command for command, _ in steps))
        found = [answer if isinstance(answer, Code) else DONE for answer in answers]
        assert found == [wanted for _, wanted in steps]
        assert [answer for answer in answers if isinstance(answer, Exception)] == []
        assert one.engine.transactions == before + 1

    async def run() -> None:
        async with running(tmp_path / "ledger") as one:
            await scenario(one)

    asyncio.run(run())
