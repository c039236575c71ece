"""The lives of hosts: what people and other controllers write, and what goes wrong."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from moorage.wire.admission import PoolWanted
from tests.simulation.metal3.cluster import NAMESPACE, VirtualKubernetes
from tests.simulation.virtual.loop import passed
from tests.support.bmo_double import hosts
from tests.support.bmo_double.hosts import DETACHED, INSPECT, PAUSED
from tests.support.kubernetes_client import Answered, Object, host, hosts_in

ALL = hosts_in(NAMESPACE)
OTHER = "metal3.io/capm3"
RETRIES = 5
ROLLING_SECONDS = 15.0


class Users:
    """All of one world."""

    def __init__(self, world: Any) -> None:
        self.world, self.random = world, world.random
        self.api = VirtualKubernetes(world, "people")
        self.served: dict[str, bool] = {}
        """Whether each host is as somebody wants it, since the faults have stopped."""
        self.images = 0

    # One life.

    async def life(self, name: str) -> None:
        """Live as a host, until it went well without faults."""
        self.served[name] = False
        await passed(self.random.uniform(0.0, 60.0))
        await self._create(name)
        lives = [
            *(self._image, self._image, self._image, self._no_image, self._inspect, self._pause),
            *(self._unpause, self._by_hand, self._detach, self._attach, self._replace, self._label),
            *(self._off_and_on, self._urgent),
        ]
        while self.world.faulty:
            await passed(self.random.uniform(1.0, self.world.haste))
            if self.world.faulty:
                await self._try(self.random.choice(lives), name)
        await self._settle(name)
        self.served[name] = True

    async def _try(self, what: Callable[[str], Awaitable[object]], name: str) -> None:
        try:
            await what(name)
        except (Answered, aiohttp.ClientError):
            return  # as people do: something else is tried later
        self.world.tell(what.__name__.strip("_"), name)

    def _now(self, name: str) -> Object | None:
        found: Object | None = self.world.cluster.host(name)
        return found

    async def _merge(self, name: str, patch: Object) -> None:
        await self.api.merge(f"{ALL}/{name}", patch)

    async def _annotate(self, name: str, annotation: str, value: str | None) -> None:
        await self._merge(name, {"metadata": {"annotations": {annotation: value}}})

    async def _create(self, name: str) -> None:
        image = self._url() if self.random.random() < 0.6 else None
        wanted = host(name, image=image)
        wanted["metadata"]["labels"] = {"rack": str(self.random.randrange(2))}
        if self.random.random() < 0.3:
            wanted["spec"]["inspectionMode"] = "disabled"
        marks = {PAUSED: OTHER} if self.random.random() < 0.1 else {}
        if self.random.random() < 0.1:
            marks[DETACHED] = ""
        wanted["metadata"]["annotations"] = marks
        while self._now(name) is None:
            try:
                await self.api.create(ALL, wanted)
            except (Answered, aiohttp.ClientError):
                await passed(2.0)

    def _url(self) -> str:
        self.images += 1
        return f"http://images/{self.images}"

    async def _image(self, name: str) -> None:
        await self._merge(name, {"spec": {"image": {"url": self._url()}}})

    async def _no_image(self, name: str) -> None:
        await self._merge(name, {"spec": {"image": None}})

    async def _inspect(self, name: str) -> None:
        await self._annotate(name, INSPECT, "")

    async def _label(self, name: str) -> None:
        await self._merge(name, {"metadata": {"labels": {"rack": str(self.random.randrange(2))}}})

    async def _urgent(self, name: str) -> None:
        """Exempt it, or no longer."""
        urgent = self.random.choice(["true", None, None])
        await self._merge(name, {"metadata": {"labels": {"urgent": urgent}}})

    async def _pause(self, name: str) -> None:
        found = self._now(name)
        if found is not None and PAUSED not in hosts.annotations(found):
            await self._annotate(name, PAUSED, OTHER)

    async def _unpause(self, name: str) -> None:
        found = self._now(name)
        if found is not None and hosts.annotations(found).get(PAUSED) == OTHER:
            await self._annotate(name, PAUSED, None)

    async def _by_hand(self, name: str) -> None:
        """Remove whatever pause there is, as the guide permits."""
        if self.random.random() < 0.3:
            await self._annotate(name, PAUSED, None)

    async def _detach(self, name: str) -> None:
        await self._annotate(name, DETACHED, "")

    async def _attach(self, name: str) -> None:
        await self._annotate(name, DETACHED, None)

    async def _off_and_on(self, name: str) -> None:
        """Switch it off, perhaps before it is provisioned, and on again."""
        await self._merge(name, {"spec": {"online": False}})
        await passed(self.random.uniform(1.0, 30.0))
        await self._merge(name, {"spec": {"online": True}})

    async def _replace(self, name: str) -> None:
        """Delete it, and create another one of its name."""
        if self.random.random() < 0.5:
            await self.api.delete(f"{ALL}/{name}")
            while self._now(name) is not None and self.world.faulty:
                await passed(3.0)
            if self._now(name) is None:
                await self._create(name)

    async def _settle(self, name: str) -> None:
        """Want one image, and nothing else, until it is there."""
        while (found := self._now(name)) is not None and found["metadata"].get("deletionTimestamp"):
            await self._try(self._unpause, name)
            await passed(5.0)
        await self._create(name)
        marks = {PAUSED: None, DETACHED: None, INSPECT: None}
        if hosts.annotations(self._now(name) or host(name)).get(PAUSED) != OTHER:
            del marks[PAUSED]
        url = self._url()
        await self._merge(name, {"metadata": {"annotations": marks}})
        await self._merge(name, {"spec": {"online": True, "image": {"url": url}}})
        while not self._has(name, url):
            await passed(5.0)
            found = self._now(name)
            status = (found or {}).get("status", {})
            if status.get("provisioningFailCount", 0) >= RETRIES:  # the operator has given up
                url = self._url()
                await self._merge(name, {"spec": {"image": {"url": url}}})

    def _has(self, name: str, url: str) -> bool:
        found = self._now(name)
        state = None if found is None else hosts.state(found)
        return state == "provisioned" and found is not None and hosts.deployed(found)[0] == url

    # Trouble.

    async def meddler(self) -> None:
        """Trouble with the API server, and deployments that fail."""
        world = self.world
        while world.faulty:
            await passed(self.random.uniform(2.0, 60.0))
            if not world.faulty:
                return
            match self.random.randrange(4):
                case 0:
                    world.tell("history is forgotten")
                    world.cluster.forget()
                case 1 if world.chance(0.5):
                    world.tell("Kubernetes is away")
                    world.cluster.away = True
                    world.later(self.random.choice([2.0, 20.0, 80.0]), world.cluster_back)
                case _:
                    node = f"{NAMESPACE}~{self.random.choice([*self.served])}"
                    times = self.random.choice([1, 1, 2, RETRIES + 1])
                    world.nodes.failures[node] = times
                    world.tell(node, "will fail", times)

    async def operator(self) -> None:
        """Change limits, and let Moorage be away."""
        world = self.world
        while world.faulty:
            await passed(self.random.uniform(10.0, 120.0))
            match self.random.randrange(2):
                case 0 if world.faulty:
                    await self.limit(self.random.randrange(0, 5))
                case 1 if world.chance(0.7):
                    world.tell("Moorage is away")
                    world.moorage_away(self.random.choice([2.0, 20.0, 100.0, 150.0]))

    async def limit(self, limit: int) -> None:
        """Change the limit."""
        self.world.tell("limit", limit)
        wanted = PoolWanted(limit=limit, expire="keep", ttl=60.0)
        await self.world.moorage.change(self.world.pool, wanted)

    async def reaper(self) -> None:
        """Kill governors and the operator, or end them, and start them again."""
        world = self.world
        while world.faulty:
            await passed(self.random.uniform(5.0, 60.0))
            programs = [one for one in world.programs if not one.process.dead]
            if not programs or not world.faulty:
                continue
            program = self.random.choice(programs)
            if self.random.random() < 0.3:
                world.tell("SIGTERM", program.name)
                await asyncio.wait([asyncio.ensure_future(program.end())], timeout=ROLLING_SECONDS)
            world.tell("SIGKILL", program.name)
            world.revive(program)
