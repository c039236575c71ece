"""Machines that send plans: a node with guests, its agent, and a plan that splits the node."""

from typing import Any

from msgspec.structs import replace

from moorage.core.fleet.model import Agent
from moorage.core.ids import ProviderId
from moorage.core.ledger.reshaping.own_tree import uuid_for
from moorage.core.ledger.reshaping.plan import Move, NewProvider, Place, ReshapePlan
from moorage.service.app import Service
from tests.service.fleet.machines import BOOT, agent_id, agent_put, machine, report
from tests.service.fleet.pair import Pair
from tests.service.running import TESTER, claim, consumer_id, provider_id

UNITS = 8
HALF = UNITS // 2


class Node:
    """The n-th machine: its root has eight units of VCPU, of which two guests have three and one.

    The guests are numbered `10 * n` and `10 * n + 1`.
    """

    def __init__(self, pair: Pair, n: int = 1) -> None:
        self.pair, self.n = pair, n
        self.agent = agent_id(n)
        self.root = provider_id(n)
        self.guests = (10 * n, 10 * n + 1)
        self.left, self.right = (uuid_for(self.root, self.child(one)) for one in ("l", "r"))
        self.generation = 0

    def child(self, name: str) -> str:
        """Return the name of a child."""
        return f"name-{self.n}_{name}"

    async def start(self, boot: str = BOOT) -> "Node":
        """Create everything, and register."""
        await self.pair.provider(self.n, VCPU=UNITS)
        for guest, units in zip(self.guests, (3, 1), strict=True):
            await self.pair.submit(claim(guest, self.root, VCPU=units))
        await agent_put(self.pair.fleets[0], self.agent, "default", {}, None, TESTER, self.root)
        await self.register(boot)
        return self

    async def register(self, boot: str = BOOT, *, at: int = 0) -> Agent:
        """Register the machine."""
        spec = machine(self.n, boot, root=self.root)
        agent = await self.pair.fleets[at].register(self.agent, spec, TESTER)
        self.generation = agent.report_generation
        return agent

    def plan(self, **members: Any) -> ReshapePlan:
        """Return the plan that moves four units to each of two children, with a guest to each."""
        assign = {
            consumer_id(self.guests[0]): {self.left: 3},
            consumer_id(self.guests[1]): {self.right: 1},
        }
        plan = ReshapePlan(
            create=tuple(
                NewProvider(uuid, self.child(name), self.root)
                for uuid, name in ((self.left, "l"), (self.right, "r"))
            ),
            moves=tuple(
                Move(Place(self.root, "VCPU"), Place(uuid, "VCPU"), HALF, assign)
                for uuid in (self.left, self.right)
            ),
            traits={self.left: frozenset({"STORAGE_DISK_SSD"})},
        )
        return replace(plan, **members)

    async def send(
        self,
        plan: ReshapePlan,
        boot: str = BOOT,
        *,
        at: int = 0,
        again: bool = False,
        pages: int = 0,
    ) -> Agent:
        """Send the next report with a plan; `again`: the last one once more."""
        number = self.generation + (not again)
        sent = report(self.n, number, pages, boot)
        agent = await self.pair.fleets[at].report_with_plan(self.agent, sent, plan, TESTER)
        self.generation = agent.report_generation
        return agent

    async def undo(self, reshape: str | None, n: int = 1) -> None:
        """Undo a reshape, as an operator."""
        from tests.service.ledger.reshapes.trees import wish

        assert reshape is not None
        await self.pair.services[0].reshapes.undo(reshape, wish(n, None, ("undo", reshape)), TESTER)

    async def totals(self) -> dict[str, tuple[int, int]]:
        """Return total and usage of VCPU by provider: l, r, root."""
        catalog = await self.pair.services[0].index.current()
        found = {}
        for name, uuid in (("root", self.root), ("l", self.left), ("r", self.right)):
            record = catalog.record(uuid)
            if record is not None and (held := record.inventories.get("VCPU")) is not None:
                found[name] = (held.total, held.used)
        return found


GLOMMED = {"root": (UNITS, 4)}
SPLIT = {"l": (HALF, 3), "r": (HALF, 1)}


async def reshapes_of(service: Service) -> list[str]:
    """Return the ids of all reshapes, the first one first."""
    records, _ = await service.reshapes.page(None, 100)
    return [one.id for one in reversed(records)]


__all__ = ["GLOMMED", "HALF", "SPLIT", "UNITS", "Node", "ProviderId", "reshapes_of"]
