"""A naive ledger: plain dicts, written after the Placement API reference.

It shares no rule with the package, only the commands (use cases) and the codes of refusals. Sums,
roots and uses are never stored but computed each time.
"""

import copy
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import Any

from moorage.core.errors import Code
from moorage.core.ledger.allocations import ANY, KEEP, ConsumerRequest
from moorage.core.ledger.inventory import InventorySpec
from moorage.service.ledger import allocation_cases, provider_cases, vocabulary_cases


class Refusal(Exception):
    """The command is refused with this code."""

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Machine:
    """A provider. `life` distinguishes it from an earlier one with the same uuid."""

    name: str
    parent: str | None
    life: int
    generation: int = 0
    offers: dict[str, InventorySpec] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()


@dataclass
class Holder:
    """A consumer. `life` distinguishes it from an earlier one with the same uuid."""

    generation: int
    life: int
    project: str
    user: str
    kind: str | None
    holds: dict[str, dict[str, int]]


class Model:
    """The ledger as it should be. `run` returns the expected answer of a command."""

    def __init__(self, classes: frozenset[str], traits: frozenset[str]) -> None:
        self.standard_classes = classes
        self.standard_traits = traits
        self.machines: dict[str, Machine] = {}
        self.holders: dict[str, Holder] = {}
        self.classes: set[str] = set()
        self.traits: set[str] = set()
        self.lives = 0

    def run(self, command: Any) -> tuple[str, Any]:
        """Return ("done", answer) or ("refused", code); a refused command changes nothing."""
        before = copy.deepcopy(self.__dict__)
        try:
            return "done", self.carry_out(command)
        except Refusal as refusal:
            self.__dict__ = before
            return "refused", refusal.code

    # Computed values.

    def root(self, uuid: str) -> str:
        """Walk up to the top of the tree."""
        while (parent := self.machines[uuid].parent) is not None:
            uuid = parent
        return uuid

    def used(self, uuid: str, name: str) -> int:
        """Add up the allocations of all consumers."""
        return sum(h.holds.get(uuid, {}).get(name, 0) for h in self.holders.values())

    def state(self, uuid: str) -> dict[str, Any]:
        """Return a provider's inventories and tags as answers show them."""
        machine = self.machines[uuid]
        return {
            "generation": machine.generation,
            "inventories": {n: (s, self.used(uuid, n)) for n, s in machine.offers.items()},
            "traits": machine.traits,
            "aggregates": machine.aggregates,
        }

    def _born(self) -> int:
        self.lives += 1
        return self.lives

    def _machine(self, uuid: str, generation: int | None = None) -> Machine:
        machine = self.machines.get(uuid)
        if machine is None:
            raise Refusal(Code.PROVIDER_NOT_FOUND)
        if generation is not None and machine.generation != generation:
            raise Refusal(Code.PROVIDER_GENERATION)
        return machine

    def _known_class(self, name: str) -> bool:
        return name in self.standard_classes or name in self.classes

    def _custom(self, name: str) -> None:
        if not re.fullmatch("CUSTOM_[A-Z0-9_]{1,248}", name):
            raise Refusal(Code.INVALID)

    # The commands.

    @singledispatchmethod
    def carry_out(self, command: Any) -> Any:
        """Carry out one command."""
        raise NotImplementedError(command)

    @carry_out.register
    def _(self, c: provider_cases.ProviderCreate) -> Any:
        if c.parent == c.uuid or not c.name:
            raise Refusal(Code.INVALID)
        if c.parent is not None and c.parent not in self.machines:
            raise Refusal(Code.PARENT_UNKNOWN)
        if c.uuid in self.machines or c.name in {m.name for m in self.machines.values()}:
            raise Refusal(Code.DUPLICATE_PROVIDER)
        self.machines[c.uuid] = Machine(c.name, c.parent, self._born())
        return (c.name, 0, c.parent, self.root(c.uuid))

    @carry_out.register
    def _(self, c: provider_cases.ProviderUpdate) -> Any:
        machine = self._machine(c.uuid)
        if c.move and c.parent != machine.parent:
            if c.parent is not None and c.parent not in self.machines:
                raise Refusal(Code.PARENT_UNKNOWN)
            if machine.parent is not None and not c.free:
                raise Refusal(Code.REPARENT_REFUSED)
            above: str | None = c.parent
            while above is not None:
                if above == c.uuid:
                    raise Refusal(Code.TREE_LOOP)
                above = self.machines[above].parent
        if any(m.name == c.name for u, m in self.machines.items() if u != c.uuid):
            raise Refusal(Code.DUPLICATE_PROVIDER)
        machine.name = c.name
        if c.move:
            machine.parent = c.parent
        return (machine.name, machine.generation, machine.parent, self.root(c.uuid))

    @carry_out.register
    def _(self, c: provider_cases.ProviderDelete) -> None:
        self._machine(c.uuid)
        if any(m.parent == c.uuid for m in self.machines.values()):
            raise Refusal(Code.PROVIDER_HAS_CHILDREN)
        if any(c.uuid in h.holds for h in self.holders.values()):
            raise Refusal(Code.PROVIDER_IN_USE)
        del self.machines[c.uuid]

    @carry_out.register
    def _(self, c: provider_cases.InventoriesReplace) -> Any:
        machine = self._machine(c.provider, c.generation)
        for spec in c.inventories.values():
            self._sound(spec, c.full_reserve)
        if not all(self._known_class(name) for name in c.inventories):
            raise Refusal(Code.CLASS_UNKNOWN)
        if any(self.used(c.provider, n) for n in machine.offers if n not in c.inventories):
            raise Refusal(Code.INVENTORY_IN_USE)
        machine.offers = dict(c.inventories)
        machine.generation += 1
        return self.state(c.provider)

    @carry_out.register
    def _(self, c: provider_cases.InventoryCreate) -> Any:
        machine = self._machine(c.provider)
        self._sound(c.spec, c.full_reserve)
        if not self._known_class(c.resource_class):
            raise Refusal(Code.CLASS_UNKNOWN)
        if c.resource_class in machine.offers:
            raise Refusal(Code.INVENTORY_EXISTS)
        machine.offers[c.resource_class] = c.spec
        machine.generation += 1
        return self.state(c.provider)

    @carry_out.register
    def _(self, c: provider_cases.InventoryUpdate) -> Any:
        machine = self._machine(c.provider, c.generation)
        self._sound(c.spec, c.full_reserve)
        if not self._known_class(c.resource_class):
            raise Refusal(Code.CLASS_NOT_FOUND)
        if c.resource_class not in machine.offers:
            raise Refusal(Code.INVENTORY_UNKNOWN)
        machine.offers[c.resource_class] = c.spec
        machine.generation += 1
        return self.state(c.provider)

    @carry_out.register
    def _(self, c: provider_cases.InventoryDelete) -> None:
        machine = self._machine(c.provider)
        if not self._known_class(c.resource_class):
            raise Refusal(Code.CLASS_NOT_FOUND)
        if c.resource_class not in machine.offers:
            raise Refusal(Code.INVENTORY_NOT_FOUND)
        if self.used(c.provider, c.resource_class):
            raise Refusal(Code.INVENTORY_IN_USE)
        del machine.offers[c.resource_class]
        machine.generation += 1

    @carry_out.register
    def _(self, c: provider_cases.InventoriesDelete) -> None:
        machine = self._machine(c.provider)
        if any(self.used(c.provider, name) for name in machine.offers):
            raise Refusal(Code.INVENTORY_IN_USE)
        machine.offers = {}
        machine.generation += 1

    def _sound(self, spec: InventorySpec, full_reserve: bool) -> None:
        room = int((spec.total - spec.reserved) * spec.allocation_ratio)
        if room < (0 if full_reserve else 1):
            raise Refusal(Code.INVALID)

    @carry_out.register
    def _(self, c: provider_cases.TraitsReplace) -> Any:
        machine = self._machine(c.provider, c.generation)
        if not c.traits <= self.standard_traits | self.traits:
            raise Refusal(Code.TRAIT_UNKNOWN)
        machine.generation += machine.traits != c.traits
        machine.traits = c.traits
        return self.state(c.provider)

    @carry_out.register
    def _(self, c: provider_cases.TraitsDelete) -> None:
        machine = self._machine(c.provider)
        machine.generation += bool(machine.traits)
        machine.traits = frozenset()

    @carry_out.register
    def _(self, c: provider_cases.AggregatesReplace) -> Any:
        machine = self._machine(c.provider, c.generation)
        machine.aggregates = c.aggregates
        machine.generation += c.generation is not None
        return self.state(c.provider)

    @carry_out.register
    def _(self, c: vocabulary_cases.ClassCreate) -> str:
        self._custom(c.name)
        if c.name in self.classes:
            raise Refusal(Code.CLASS_EXISTS)
        self.classes.add(c.name)
        return c.name

    @carry_out.register
    def _(self, c: vocabulary_cases.ClassEnsure) -> bool:
        self._custom(c.name)
        new = c.name not in self.classes
        self.classes.add(c.name)
        return new

    @carry_out.register
    def _(self, c: vocabulary_cases.ClassRename) -> str:
        if c.old in self.standard_classes:
            raise Refusal(Code.STANDARD_CLASS)
        if c.old not in self.classes:
            raise Refusal(Code.CLASS_NOT_FOUND)
        self._custom(c.new)
        if c.new != c.old and c.new in self.classes:
            raise Refusal(Code.CLASS_EXISTS)
        self.classes = self.classes - {c.old} | {c.new}
        for machine in self.machines.values():
            if c.old in machine.offers:
                machine.offers[c.new] = machine.offers.pop(c.old)
        for holder in self.holders.values():
            for amounts in holder.holds.values():
                if c.old in amounts:
                    amounts[c.new] = amounts.pop(c.old)
        return c.new

    @carry_out.register
    def _(self, c: vocabulary_cases.ClassDelete) -> None:
        if c.name in self.standard_classes:
            raise Refusal(Code.STANDARD_CLASS)
        if c.name not in self.classes:
            raise Refusal(Code.CLASS_NOT_FOUND)
        if any(c.name in machine.offers for machine in self.machines.values()):
            raise Refusal(Code.CLASS_IN_USE)
        self.classes.remove(c.name)

    @carry_out.register
    def _(self, c: vocabulary_cases.TraitEnsure) -> tuple[str, bool]:
        self._custom(c.name)
        new = c.name not in self.traits
        self.traits.add(c.name)
        return c.name, new

    @carry_out.register
    def _(self, c: vocabulary_cases.TraitDelete) -> None:
        if c.name in self.standard_traits:
            raise Refusal(Code.STANDARD_TRAIT)
        if c.name not in self.traits:
            raise Refusal(Code.TRAIT_NOT_FOUND)
        if any(c.name in machine.traits for machine in self.machines.values()):
            raise Refusal(Code.TRAIT_IN_USE)
        self.traits.remove(c.name)

    @carry_out.register
    def _(self, c: allocation_cases.AllocationsReplace) -> None:
        self._hold(c.requests)

    @carry_out.register
    def _(self, c: allocation_cases.AllocationsDelete) -> None:
        if c.consumer not in self.holders:
            raise Refusal(Code.ALLOCATIONS_NOT_FOUND)
        del self.holders[c.consumer]

    @carry_out.register
    def _(self, c: allocation_cases.Reshape) -> None:
        for uuid, (generation, _) in c.inventories.items():
            self._machine(uuid, generation)
        self._check_requests(c.requests)
        if not all(self._known_class(n) for _, specs in c.inventories.values() for n in specs):
            raise Refusal(Code.CLASS_UNKNOWN)
        dropped = {
            (uuid, name)
            for uuid, (_, specs) in c.inventories.items()
            for name in self.machines[uuid].offers
            if name not in specs
        }
        for uuid, (_, specs) in c.inventories.items():
            self.machines[uuid].offers |= specs
        self._hold(c.requests)
        if any(self.used(uuid, name) for uuid, name in dropped):
            raise Refusal(Code.INVENTORY_IN_USE)
        for uuid, (_, specs) in c.inventories.items():
            self.machines[uuid].offers = dict(specs)
            self.machines[uuid].generation += 2 if specs else 1

    def _check_requests(self, requests: list[ConsumerRequest]) -> None:
        for r in requests:
            stored = self.holders.get(r.consumer)
            if r.generation is not ANY and r.generation != (stored and stored.generation):
                raise Refusal(Code.CONSUMER_GENERATION)
        if not all(uuid in self.machines for r in requests for uuid in r.allocations):
            raise Refusal(Code.PROVIDER_UNKNOWN)
        asked = {name for r in requests for amounts in r.allocations.values() for name in amounts}
        if not all(self._known_class(name) for name in asked):
            raise Refusal(Code.CLASS_UNKNOWN)

    def _hold(self, requests: list[ConsumerRequest]) -> set[str]:
        """Set the allocations of consumers; return the providers whose generation rose."""
        self._check_requests(requests)
        asked = [
            (uuid, name, amount)
            for r in requests
            for uuid, amounts in r.allocations.items()
            for name, amount in amounts.items()
        ]
        wanted = {name for _, name, _ in asked}
        if not all(wanted & self.machines[uuid].offers.keys() for uuid, _, _ in asked):
            raise Refusal(Code.INVENTORY_MISSING)
        taken: Counter[tuple[str, str]] = Counter()
        for uuid, name, amount in asked:
            spec = self.machines[uuid].offers.get(name)
            if spec is None:
                raise Refusal(Code.INVENTORY_MISSING)
            if amount not in range(spec.min_unit, spec.max_unit + 1) or amount % spec.step_size:
                raise Refusal(Code.UNITS_VIOLATED)
            taken[uuid, name] += amount
            more = taken[uuid, name] - self._held_by(requests, uuid, name)
            room = (spec.total - spec.reserved) * spec.allocation_ratio
            if more > 0 and self.used(uuid, name) + more > room:
                raise Refusal(Code.CAPACITY_EXCEEDED)
        touched = {uuid for r in requests for uuid in self._replace(r)}
        for each in touched:
            self.machines[each].generation += 1
        return touched

    def _held_by(self, requests: list[ConsumerRequest], uuid: str, name: str) -> int:
        """Return the amount of one class that the requests' consumers have on one machine."""
        held = [self.holders[r.consumer].holds for r in requests if r.consumer in self.holders]
        return sum(holds.get(uuid, {}).get(name, 0) for holds in held)

    def _replace(self, r: ConsumerRequest) -> set[str]:
        """Replace one consumer's allocations; return the providers that it uses or used."""
        before = self.holders.pop(r.consumer, None)
        if not r.allocations:
            return set(before.holds) if before else set()
        kind = r.consumer_type
        if kind is KEEP:
            kind = before.kind if before else None
        self.holders[r.consumer] = Holder(
            generation=before.generation + 1 if before else 1,
            life=before.life if before else self._born(),
            project=r.project_id,
            user=r.user_id,
            kind=kind,
            holds={uuid: dict(amounts) for uuid, amounts in r.allocations.items()},
        )
        return set(r.allocations)
