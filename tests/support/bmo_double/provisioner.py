"""What the operator makes of a node's state, as `pkg/provisioner/ironic/` does.

Each method may be called at any time and any number of times; it looks at the node and does one
step. Raises Transient.
"""

from dataclasses import dataclass

from tests.support.bmo_double.nodes import Nodes, Seen, Transient

SHORT, LONG = 3.0, 10.0
"""`shortRetryDelay` and `longRetryDelay`."""

COUNTED = {
    *("cleaning", "clean wait", "inspecting", "inspect wait", "deploying", "wait call-back"),
    "deleting",
}
WAITING = {"deploying", "deleting", "cleaning", "clean wait"}


@dataclass(frozen=True)
class Progress:
    """`dirty`: it is not over, look again `after` this many seconds. `error`: it has failed."""

    dirty: bool = False
    after: float = 0.0
    error: str = ""
    started: bool = False


OVER = Progress()


@dataclass
class Provisioner:
    """Drives nodes. `limit` is the operator's own, of busy nodes (`PROVISIONING_LIMIT`)."""

    nodes: Nodes
    limit: int = 20

    async def has_capacity(self, name: str) -> bool:
        """Return whether one more node may be busy: `HasCapacity`, counted first, then acted."""
        busy = {node.name for node in await self.nodes.all() if node.state in COUNTED}
        return name in busy or len(busy) < self.limit

    async def register(self, name: str, *, restart: bool) -> Progress:
        """Enrol a node and verify it (`Register`)."""
        node = await self.nodes.get(name)
        if node is None:
            await self.nodes.create(name)
            return await self._change(name, "manage")
        if node.state == "enroll":
            if node.error and not restart:
                return Progress(error=node.error)
            return await self._change(name, "manage")
        return Progress(dirty=True, after=SHORT) if node.state == "verifying" else OVER

    async def inspect(self, name: str, *, restart: bool, refresh: bool) -> Progress:
        """Inspect a node (`InspectHardware`)."""
        node = await self._node(name)
        match node.state:
            case "available":
                return await self._change(name, "manage")
            case "inspecting" | "inspect wait":
                return Progress(dirty=True, after=LONG)
            case "inspect failed" if not restart:
                return Progress(error=node.error or "Inspection failed")
            case "manageable" if node.inspected and not refresh:
                return OVER
            case "inspect failed" | "manageable":
                return await self._change(name, "inspect")
        raise Transient(f"unexpected provision state {node.state}")

    async def prepare(self, name: str, *, unprepared: bool, restart: bool) -> Progress:
        """Prepare a node (`Prepare`); `unprepared`: there is something to clean by hand."""
        node = await self._node(name)
        match node.state:
            case "available" if unprepared:
                return await self._change(name, "manage", started=False)
            case "manageable" if unprepared:
                return await self._change(name, "clean")
            case "available" | "manageable":
                return Progress(started=True)
            case "clean failed" if not restart:
                return Progress(error=node.error or "cleaning failed")
            case "clean failed":
                return await self._change(name, "manage", started=False)
            case "cleaning" | "clean wait":
                return Progress(dirty=True, after=LONG)
        raise Transient(f"have unexpected ironic node state {node.state}")

    async def provision(self, name: str, *, url: str) -> Progress:
        """Deploy an image (`Provision`); a node that is not available yet is cleaned first."""
        node = await self._node(name)
        match node.state:
            case "deploy failed":
                why = node.error or "unknown"
                return Progress(error=f"Image provisioning failed (url: {url}): {why}")
            case "manageable":
                return await self._change(name, "provide")
            case "clean failed":
                return await self._change(name, "manage")
            case "available":
                return await self._change(name, "active")
            case "active":
                return OVER
        return Progress(dirty=True, after=LONG)

    async def deprovision(self, name: str, *, restart: bool) -> Progress:
        """Remove an image (`Deprovision`)."""
        node = await self._node(name)
        match node.state:
            case "error" | "clean failed" if not restart:
                return Progress(error=node.error or "Deprovisioning failed")
            case "clean failed":
                return await self._change(name, "manage")
            case "manageable":
                return await self._change(name, "provide")
            case "available":
                return OVER
            case "error" | "active" | "deploy failed" | "wait call-back":
                return await self._change(name, "deleted")
        if node.state in WAITING:
            return Progress(dirty=True, after=LONG)
        raise Transient(f"unhandled ironic state {node.state}")

    async def power(self, name: str, *, on: bool) -> Progress:
        """Switch a node (`PowerOn`, `PowerOff`); one that is gone is off."""
        node = await self.nodes.get(name)
        if node is None or node.powered is on:
            return OVER
        done = await self.nodes.power(name, on=on)
        return Progress(dirty=True, after=0.0 if done else SHORT)

    async def delete(self, name: str) -> Progress:
        """Remove a node (`Delete`), unless it works on something."""
        node = await self.nodes.get(name)
        if node is None:
            return OVER
        if node.state in COUNTED or node.state == "verifying":
            return Progress(dirty=True, after=LONG)
        await self.nodes.remove(name)
        return Progress(dirty=True)

    async def _node(self, name: str) -> Seen:
        node = await self.nodes.get(name)
        if node is None:
            raise Transient("host is not registered")
        return node

    async def adopt(self, name: str, *, restart: bool) -> Progress:
        """Adopt a node that is registered again (`Adopt`); others need nothing."""
        node = await self._node(name)
        match node.state:
            case "enroll" | "verifying":
                raise Transient(f"invalid state for adopt: {node.state}")
            case "manageable":
                return await self._change(name, "adopt")
            case "adopting":
                return Progress(dirty=True, after=SHORT)
            case "adopt failed" if not restart:
                return Progress(error=f"Host adoption failed: {node.error}")
            case "adopt failed":
                return await self._change(name, "adopt")
        return OVER

    async def service(self, name: str, *, wanted: bool, restart: bool) -> Progress:
        """Service a node that is in use (`Service`)."""
        node = await self._node(name)
        match node.state:
            case "servicing" | "service wait":
                return Progress(dirty=True, after=LONG)
            case "service failed" if not restart:
                return Progress(error=node.error or "servicing failed")
            case "active" if not wanted:
                return OVER
            case "active" | "service failed":
                return await self._change(name, "service")
        raise Transient(f"have unexpected ironic node state {node.state}")

    async def _change(self, name: str, target: str, *, started: bool = True) -> Progress:
        """Change the node's state; after a 409 soon again (`tryChangeNodeProvisionState`).

        `started`: this begins the work that was asked for.
        """
        changed = await self.nodes.change(name, target)
        return Progress(dirty=True, after=SHORT, started=changed and started)
