"""What is next for a host (`host_state_machine.go`); the table is in the package's docstring."""

from collections.abc import Awaitable, Callable

from tests.support.bmo_double import hosts
from tests.support.bmo_double.actions import UNMANAGED, Actions
from tests.support.bmo_double.results import COMPLETE, UPDATE, Result, delayed, going_on

LIMITED = ("inspecting", "provisioning", "deprovisioning")
"""The states that need capacity."""
UNREGISTERED = ("", "unmanaged", "deleting")
DETACHABLE = ("available", "provisioned")
"""In other states a host that is to be detached works on, unless it is forced."""
POWERING_OFF = "powering off before delete"
PATIENCE = 3
"""The errors in a row after which a deletion goes on all the same: `retryCount`."""

Handler = Callable[[], Awaitable[Result]]


class StateMachine:
    """One look at a host."""

    def __init__(self, actions: Actions) -> None:
        self._actions, self._host = actions, actions.host
        self._status = self._host.setdefault("status", {})
        self.next = hosts.state(self._host)

    async def reconcile(self) -> Result:
        """Do one step and choose the next state: `ReconcileState`. Raises Transient."""
        initial = hosts.state(self._host)
        result = await self._step(initial)
        if self.next == initial:
            return result
        if self.next in LIMITED and not await self._has_capacity():
            return self._delay()
        hosts.provisioning(self._host)["state"] = self.next
        return result

    async def _has_capacity(self) -> bool:
        return await self._actions.provisioner.has_capacity(self._actions.node)

    def _delay(self) -> Result:
        self._status["operationalStatus"] = "delayed"
        return delayed(self._actions.random)

    async def _step(self, initial: str) -> Result:
        waiting = self._status.get("operationalStatus") == "delayed"
        if waiting or initial in LIMITED:
            if not await self._has_capacity():
                return self._delay()
            if waiting:
                hosts.clear_error(self._host)
                return UPDATE
        if self._initiate_delete():
            return COMPLETE
        if result := await self._detached():
            return result
        if self.next not in UNREGISTERED and (result := await self._actions.register()):
            return result
        handlers: dict[str, Handler] = {
            "": self._none,
            "unmanaged": self._unmanaged,
            "registering": self._registering,
            "inspecting": self._inspecting,
            "preparing": self._preparing,
            "available": self._available,
            "provisioning": self._provisioning,
            "provisioned": self._provisioned,
            "deprovisioning": self._deprovisioning,
            POWERING_OFF: self._powering_off,
            "deleting": self._actions.delete,
        }
        return await handlers[initial]()

    async def _detached(self) -> Result | None:
        """Take no action for a detached host: `checkDetachedHost`."""
        if hosts.DETACHED in hosts.annotations(self._host) and self.next in DETACHABLE:
            return await self._actions.detach()
        if self._status.get("operationalStatus") == hosts.OPERATIONAL_DETACHED:
            self._status["operationalStatus"] = "error" if self._status.get("errorType") else "OK"
            return UPDATE
        return None

    def _initiate_delete(self) -> bool:
        if not self._host["metadata"].get("deletionTimestamp"):
            return False
        detached = self._status.get("operationalStatus") == hosts.OPERATIONAL_DETACHED
        if self.next != "deleting" and hosts.DETACHED in hosts.annotations(self._host):
            self.next = "deleting"
            return True
        if self.next != "deleting" and detached:
            return False  # it is registered again first: `delayDeleteForDetachedHost`
        given_up = self._status.get("errorType") == "registration error"
        match self.next:
            case "deprovisioning" | "powering off before delete" if given_up and (
                self._status.get("errorCount", 0) > PATIENCE
            ):
                self.next = "deleting"
            case "" | "unmanaged" | "registering":
                self.next = "deleting"
            case "provisioning" | "provisioned":
                self.next = "deprovisioning"
            case "deprovisioning" | "deleting" | "powering off before delete":
                return False
            case _:
                self.next = POWERING_OFF
        return True

    def _go(self, state: str, result: Result) -> Result:
        """Choose the next state, if the action is complete."""
        if result.complete:
            self.next = state
            self._status["errorCount"] = 0
        return result

    async def _none(self) -> Result:
        managed = hosts.has_bmc(self._host)
        self.next = "registering" if managed else "unmanaged"
        if not managed:
            self._status["operationalStatus"] = "discovered"
        return COMPLETE

    async def _unmanaged(self) -> Result:
        if hosts.has_bmc(self._host):
            self.next = "registering"
            return COMPLETE
        return going_on(UNMANAGED)

    async def _registering(self) -> Result:
        disabled = hosts.inspection_disabled(self._host)
        return self._go("preparing" if disabled else "inspecting", COMPLETE)

    async def _inspecting(self) -> Result:
        return self._go("preparing", await self._actions.inspect())

    async def _preparing(self) -> Result:
        return self._go("available", await self._actions.prepare())

    async def _available(self) -> Result:
        if hosts.inspection_wanted(self._host):
            self.next = "inspecting"
            return COMPLETE
        if hosts.has_new_settings(self._host):
            self.next = "preparing"
            return COMPLETE
        if not hosts.image(self._host) and self._status.get("provisioningFailCount"):
            self._status["provisioningFailCount"] = 0
            self._status.pop("lastAttemptedImage", None)
        result = await self._actions.manage_available()
        if result.complete:
            self.next = "provisioning"
        return result

    async def _provisioning(self) -> Result:
        failed = bool(self._status.get("errorType"))
        if failed or hosts.cancelled(self._host):
            if failed:
                count = self._status.get("provisioningFailCount", 0)
                self._status["provisioningFailCount"] = count + 1
            self.next = "deprovisioning"
            return COMPLETE
        if wanted := self._host["spec"].get("image"):
            self._status["lastAttemptedImage"] = wanted
        result = self._go("provisioned", await self._actions.provision())
        if result.complete:
            self._status["provisioningFailCount"] = 0
        return result

    async def _provisioned(self) -> Result:
        if hosts.cancelled(self._host):
            self.next = "deprovisioning"
            return COMPLETE
        return await self._actions.manage_steady()

    async def _deprovisioning(self) -> Result:
        result = await self._actions.deprovision()
        if not self._host["metadata"].get("deletionTimestamp"):
            return self._go("available", result)
        if result.failed and self._status["errorCount"] > PATIENCE:
            self.next = POWERING_OFF
            return COMPLETE
        return self._go(POWERING_OFF, result)

    async def _powering_off(self) -> Result:
        result = await self._actions.power_off()
        if result.complete:
            self._status["poweredOn"] = False
        return self._go("deleting", result)
