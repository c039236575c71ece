"""The cases of Boskos that differ in strict mode, where acquiring is exactly as in Boskos."""

from dataclasses import dataclass

from moorage.core.admission.compat import boskos, boskos_strict
from moorage.core.admission.compat.boskos import Acquired, AcquireRequest
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.model import Slot
from moorage.core.ids import LeaseId
from moorage.core.service_time import When
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import Changes, Keys, World


@dataclass(slots=True)
class AcquireStrict(UseCase[Acquired]):
    """Poll for a slot of a type."""

    request: AcquireRequest
    _ticket: LeaseId | None = None

    def keys(self) -> Keys:
        pools = {self.request.pool}
        return Keys(admission=AdmissionKeys(pools=pools, ends=pools))

    def decide(self, world: World, when: When) -> Changes:
        changes, self._ticket = boskos_strict.acquire_strict(
            world.admission, when.moment, when.wall, self.request
        )
        return Changes(admission=changes)

    def conclude(self, world: World, when: When) -> Acquired:
        return boskos_strict.acquired_strict(world.admission, self.request, self._ticket)


@dataclass(slots=True)
class TakeNamed(UseCase[list[Slot]]):
    """Take slots by name as Boskos does. Raises NO_CAPACITY, but keeps the slots it could take."""

    request: AcquireRequest
    names: list[str]
    fresh: list[LeaseId]
    """The ids of the leases, one per name."""
    _taken: list[tuple[str, str]] | None = None

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(slots={("", name) for name in self.names}))

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        changes, self._taken = boskos_strict.take_named(
            facts, when.moment, when.wall, self.request, self.names, self.fresh
        )
        return Changes(admission=changes)

    def conclude(self, world: World, when: When) -> list[Slot]:
        if self._taken is None:
            raise boskos.nothing(self.request.state)
        return [world.admission.slots[pool][name] for pool, name in self._taken]
