"""Random ledger commands: mostly sensible in the state of the model, sometimes not at all.

Few names for everything, so that commands meet each other.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from moorage.core.ids import AggregateId, ConsumerId, ProviderId
from moorage.core.ledger.allocations import ANY, KEEP, ConsumerRequest
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.limits import MAX_INT
from moorage.service.ledger import allocation_cases, provider_cases, vocabulary_cases
from tests.simulation.model import Model

CLASSES = frozenset({"VCPU", "DISK_GB"})
TRAITS = frozenset({"HW_NUMA_ROOT", "MISC_SHARES_VIA_AGGREGATE"})

PROVIDERS = [ProviderId(f"{n}0000000-0000-4000-8000-00000000000a") for n in range(6)]
CONSUMERS = [ConsumerId(f"{n}0000000-0000-4000-8000-00000000000c") for n in range(5)]
AGGREGATES = [AggregateId(f"{n}0000000-0000-4000-8000-00000000000d") for n in range(3)]
NAMES = [f"name-{n}" for n in range(6)]
CUSTOM_CLASSES = ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]
FOCUSES = ["everything", "claims", "trees", "words"]
CUSTOM_TRAITS = ["CUSTOM_S", "CUSTOM_T"]

_specs = st.builds(
    InventorySpec,
    total=st.sampled_from([1, 2, 3, 4, 8, 20, MAX_INT]),
    reserved=st.sampled_from([0, 0, 0, 1, 4]),
    min_unit=st.sampled_from([1, 1, 1, 2]),
    max_unit=st.sampled_from([MAX_INT, MAX_INT, 4, 3]),
    step_size=st.sampled_from([1, 1, 1, 2]),
    allocation_ratio=st.sampled_from([1.0, 1.0, 1.0, 1.5, 0.5, 0.0, 4.0, 3.40282e38, -1.0]),
)


class Source:
    """Draws commands that fit the model's present state more often than not."""

    def __init__(self, data: DataObject, model: Model, focus: str) -> None:
        self._data = data
        self._model = model
        self._standard_classes = [] if focus == "words" else sorted(CLASSES)
        self._standard_traits = [] if focus == "words" else sorted(TRAITS)
        self._kinds = self._kinds_of(focus)

    def command(self) -> Any:
        """Return one use case."""
        return self._one(self._kinds)()

    def _kinds_of(self, focus: str) -> list[Callable[[], Any]]:
        claims = [
            *[self._allocations_replace] * 8,
            *[self._allocations_delete] * 2,
            *[self._reshape] * 3,
            *[self._inventories_replace] * 2,
            *[self._inventory_update] * 2,
            self._inventory_create,
        ]
        trees = [
            *[self._provider_create] * 3,
            *[self._provider_update] * 6,
            *[self._provider_delete] * 2,
        ]
        words = [
            *[self._word] * 6,
            *[self._class_rename] * 2,
            *[self._inventory_create] * 2,
            *[self._inventories_replace] * 2,
            self._inventory_delete,
            self._inventories_delete,
            self._allocations_replace,
            *[self._traits_replace] * 3,
            self._traits_delete,
            self._provider_delete,
            self._provider_create,
            self._aggregates_replace,
        ]
        everything = [*claims, *trees, *words]
        return {"claims": claims, "trees": trees, "words": words}.get(focus, everything)

    def _draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self._data.draw(strategy)

    def _one(self, choices: Any) -> Any:
        return self._draw(st.sampled_from(list(choices)))

    def _often(self) -> bool:
        """True in seven of eight cases."""
        return bool(self._draw(st.integers(0, 7)))

    def _provider(self) -> ProviderId:
        """Return mostly a provider that exists."""
        there = sorted(self._model.machines)
        return ProviderId(self._one(there if there and self._often() else PROVIDERS))

    def _generation(self, uuid: str) -> int:
        machine = self._model.machines.get(uuid)
        seen = machine.generation if machine else 0
        return seen if self._often() else int(self._one([0, seen + 1, max(0, seen - 1)]))

    def _class(self) -> str:
        known = sorted([*self._standard_classes, *self._model.classes])
        return str(self._one(known if known and self._often() else [*CLASSES, *CUSTOM_CLASSES]))

    def _full_reserve(self) -> bool:
        return self._often()

    def _provider_create(self) -> provider_cases.ProviderCreate:
        free = [uuid for uuid in PROVIDERS if uuid not in self._model.machines]
        taken = {machine.name for machine in self._model.machines.values()}
        names = [name for name in NAMES if name not in taken]
        uuid = self._one(free if free and self._often() else PROVIDERS)
        name = self._one(names if names and self._often() else NAMES)
        parent = self._one([None, self._provider()])
        return provider_cases.ProviderCreate(uuid, name, parent)

    def _provider_update(self) -> provider_cases.ProviderUpdate:
        uuid = self._provider()
        machine = self._model.machines.get(uuid)
        name = machine.name if machine and self._one([True, False]) else self._one(NAMES)
        if self._one([True, False]):
            return provider_cases.ProviderUpdate(uuid, name)
        parent = self._one([None, self._provider(), self._provider()])
        return provider_cases.ProviderUpdate(
            uuid, name, move=True, parent=parent, free=self._often()
        )

    def _provider_delete(self) -> provider_cases.ProviderDelete:
        return provider_cases.ProviderDelete(self._provider())

    def _offer(self) -> dict[str, InventorySpec]:
        names = {self._class() for _ in range(self._one([0, 1, 2, 3]))}
        return {name: self._draw(_specs) for name in sorted(names)}

    def _inventories_replace(self) -> provider_cases.InventoriesReplace:
        uuid = self._provider()
        offer = self._offer()
        machine = self._model.machines.get(uuid)
        if machine and self._often():  # use existing names, so that most commands are valid
            offer = {**machine.offers, **offer}
        return provider_cases.InventoriesReplace(
            uuid, self._generation(uuid), offer, self._full_reserve()
        )

    def _inventory_create(self) -> provider_cases.InventoryCreate:
        return provider_cases.InventoryCreate(
            self._provider(), self._class(), self._draw(_specs), self._full_reserve()
        )

    def _inventory_update(self) -> provider_cases.InventoryUpdate:
        uuid, name = self._held()
        return provider_cases.InventoryUpdate(
            uuid, name, self._generation(uuid), self._draw(_specs), self._full_reserve()
        )

    def _inventories_delete(self) -> provider_cases.InventoriesDelete:
        return provider_cases.InventoriesDelete(self._provider())

    def _traits_delete(self) -> provider_cases.TraitsDelete:
        return provider_cases.TraitsDelete(self._provider())

    def _inventory_delete(self) -> provider_cases.InventoryDelete:
        return provider_cases.InventoryDelete(*self._held())

    def _held(self) -> tuple[ProviderId, str]:
        """Return mostly an inventory that exists."""
        held = sorted((u, n) for u, m in self._model.machines.items() for n in m.offers)
        if held and self._often():
            uuid, name = self._one(held)
            return ProviderId(uuid), name
        return self._provider(), self._class()

    def _traits_replace(self) -> provider_cases.TraitsReplace:
        uuid = self._provider()
        known = sorted([*self._standard_traits, *self._model.traits])
        pool = known if known and self._often() else [*TRAITS, *CUSTOM_TRAITS]
        traits = frozenset(self._one(pool) for _ in range(self._one([0, 1, 2, 3])))
        return provider_cases.TraitsReplace(uuid, self._generation(uuid), traits)

    def _aggregates_replace(self) -> provider_cases.AggregatesReplace:
        uuid = self._provider()
        aggregates = frozenset(self._one(AGGREGATES) for _ in range(self._one([0, 1, 2])))
        generation = self._generation(uuid) if self._one([True, False]) else None
        return provider_cases.AggregatesReplace(uuid, aggregates, generation)

    def _word(self) -> Any:
        """Return a command that makes or removes a class or a trait."""
        kind, names = self._one(
            [
                (vocabulary_cases.ClassCreate, CUSTOM_CLASSES),
                (vocabulary_cases.ClassEnsure, CUSTOM_CLASSES),
                (vocabulary_cases.ClassDelete, [*CUSTOM_CLASSES, "VCPU"]),
                (vocabulary_cases.TraitEnsure, CUSTOM_TRAITS),
                (vocabulary_cases.TraitDelete, [*CUSTOM_TRAITS, "HW_NUMA_ROOT"]),
            ]
        )
        return kind(self._one(names) if self._often() else self._one([*names, "custom", "CUSTOM_"]))

    def _class_rename(self) -> vocabulary_cases.ClassRename:
        known = sorted(self._model.classes)
        free = [name for name in CUSTOM_CLASSES if name not in known]
        old = self._one(known if known and self._often() else [*CUSTOM_CLASSES, "VCPU"])
        new = self._one(free if free and self._often() else [*CUSTOM_CLASSES, "bad"])
        return vocabulary_cases.ClassRename(old, new)

    def _allocations_delete(self) -> allocation_cases.AllocationsDelete:
        there = sorted(self._model.holders)
        return allocation_cases.AllocationsDelete(
            self._one(there if there and self._often() else CONSUMERS)
        )

    def _allocations_replace(self) -> allocation_cases.AllocationsReplace:
        return allocation_cases.AllocationsReplace(self._requests(self._one([1, 1, 1, 2, 3])))

    def _requests(self, count: int) -> list[ConsumerRequest]:
        consumers = self._draw(st.permutations(CONSUMERS))[:count]
        return [self._request(ConsumerId(consumer)) for consumer in consumers]

    def _request(self, consumer: ConsumerId) -> ConsumerRequest:
        stored = self._model.holders.get(consumer)
        generation = stored.generation if stored else None
        if not self._often():
            generation = self._one([None, 0, 1, 2, ANY, ANY])
        wish: dict[ProviderId, dict[str, int]] = {}
        for _ in range(self._one([0, 1, 1, 2, 2, 3])):
            uuid, name = self._held()
            wish.setdefault(uuid, {})[name] = self._one([1, 1, 2, 2, 3, 4, 8, MAX_INT])
        kind = self._one(["INSTANCE", "MIGRATION", KEEP, None])
        project, user = self._one(["p1", "p2"]), self._one(["u1", "u2"])
        return ConsumerRequest(consumer, wish, project, user, kind, generation)

    def _reshape(self) -> allocation_cases.Reshape:
        """Return mostly the move of one class, with all that is on it, to another provider."""
        held = sorted((u, n) for u, m in self._model.machines.items() for n in m.offers)
        if not held or not self._often():
            return self._wild_reshape()
        source, name = self._one(held)
        target = self._provider()
        machines = self._model.machines
        if target not in machines or target == source:
            return self._wild_reshape()
        moved = {n: s for n, s in machines[source].offers.items() if n != name}
        grown = {**machines[target].offers, name: machines[source].offers[name]}
        requests = []
        for uuid, holder in sorted(self._model.holders.items()):
            amount = holder.holds.get(source, {}).get(name)
            if amount is None or not self._often():
                continue
            wish = {ProviderId(u): dict(amounts) for u, amounts in holder.holds.items()}
            del wish[ProviderId(source)][name]
            if not wish[ProviderId(source)]:
                del wish[ProviderId(source)]
            there = wish.setdefault(target, {})
            there[name] = there.get(name, 0) + amount
            requests.append(
                ConsumerRequest(
                    ConsumerId(uuid), wish, holder.project, holder.user, KEEP, holder.generation
                )
            )
        offers = {
            ProviderId(source): (self._generation(source), moved),
            target: (self._generation(target), grown),
        }
        return allocation_cases.Reshape(offers, requests)

    def _wild_reshape(self) -> allocation_cases.Reshape:
        uuids = {self._provider() for _ in range(self._one([1, 2]))}
        offers = {uuid: (self._generation(uuid), self._offer()) for uuid in sorted(uuids)}
        return allocation_cases.Reshape(offers, self._requests(self._one([0, 1, 2])))
