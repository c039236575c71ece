"""What the operator does in each state (`baremetalhost_controller.go`)."""

from dataclasses import dataclass, field
from random import Random

from tests.support.bmo_double import hosts
from tests.support.bmo_double.hosts import Object
from tests.support.bmo_double.provisioner import Progress, Provisioner
from tests.support.bmo_double.results import COMPLETE, GONE, UPDATE, Result, failure, going_on

STEADY = 60.0
UNMANAGED = 600.0
ADOPTION = "provisioned registration error"
ARCHITECTURE = "x86_64"


@dataclass
class Actions:
    """The actions of one look at a host; they change `host`, which is a copy from the cache.

    `events` are posted afterwards. `changed_metadata`: the host itself is saved, not its status.
    `retries`: this many deployments of one image may fail.
    """

    host: Object
    provisioner: Provisioner
    random: Random
    retries: int
    events: list[tuple[str, str]] = field(default_factory=list)
    changed_metadata: bool = False

    @property
    def node(self) -> str:
        """The name of the host's node: `ironicNodeName`."""
        metadata = self.host["metadata"]
        return f"{metadata['namespace']}~{metadata['name']}"

    def failed_with(self, kind: str) -> bool:
        """Return whether the host has an error of this kind."""
        return self.host["status"].get("errorType") == kind

    def fail(self, kind: str, message: str) -> Result:
        """Record an error: `recordActionFailure`."""
        self.events.append((kind.title().replace(" ", ""), message))
        return failure(hosts.set_error(self.host, kind, message), self.random)

    def going_on(self, progress: Progress) -> Result:
        """Look again later; without an error from now on."""
        return going_on(progress.after, dirty=hosts.clear_error(self.host))

    async def register(self) -> Result | None:
        """Register the host; None: it is: `registerHost`."""
        restart, status = self.failed_with("registration error"), self.host["status"]
        progress = await self.provisioner.register(self.node, restart=restart)
        if progress.error:
            return self.fail("registration error", progress.error)
        had = hosts.provisioning(self.host)
        new = had.get("ID") != self.node
        had["ID"] = self.node
        if progress.dirty:
            new = hosts.clear_error(self.host) or new
            return going_on(progress.after, dirty=new)
        if hosts.match_profile(self.host):
            return UPDATE
        first = "goodCredentials" not in status
        if first:
            bmc = self.host["spec"].get("bmc") or {}
            named = {"name": bmc.get("credentialsName", "")}
            status["goodCredentials"] = {"credentials": named, "credentialsVersion": "1"}
            self.events.append(("BMCAccessValidated", "Verified access to BMC"))
        is_new = (first or restart) and hosts.clear_error(self.host)
        return UPDATE if is_new else None

    async def inspect(self) -> Result:
        """Inspect the host: `actionInspecting`."""
        host = self.host
        if hosts.inspection_disabled(host):
            self.events.append(("InspectionSkipped", "disabled by user"))
            return COMPLETE
        refresh = hosts.inspection_wanted(host)
        restart = self.failed_with("inspection error")
        progress = await self.provisioner.inspect(self.node, restart=restart, refresh=refresh)
        if progress.error:
            return self.fail("inspection error", progress.error)
        if progress.started and refresh:
            del host["metadata"]["annotations"][hosts.INSPECT]
            self.changed_metadata = True
            return going_on(0.0)
        if progress.dirty:
            return self.going_on(progress)
        hosts.clear_error(host)
        host["status"]["hardware"] = {"cpu": {"arch": ARCHITECTURE, "count": 8}}
        return COMPLETE

    async def prepare(self) -> Result:
        """Prepare the host: `actionPreparing`."""
        restart = self.failed_with("preparation error")
        new = restart or hosts.has_new_settings(self.host)
        progress = await self.provisioner.prepare(self.node, unprepared=new, restart=restart)
        if progress.error:
            hosts.forget_settings(self.host)
            return self.fail("preparation error", progress.error)
        if new and progress.started:
            hosts.keep_settings(self.host)
        if progress.started:
            new = hosts.clear_error(self.host) or new
        return going_on(progress.after, dirty=new) if progress.dirty else COMPLETE

    async def manage_available(self) -> Result:
        """Start a deployment, if there is something new to deploy: `actionManageAvailable`."""
        status, wanted = self.host["status"], self.host["spec"].get("image")
        if not hosts.needs_provisioning(self.host):
            return await self.manage_power()
        if wanted != status.get("lastAttemptedImage"):
            status["provisioningFailCount"] = 0
        failed = status.get("provisioningFailCount", 0)
        if 0 < self.retries <= failed:
            text = f"provisioning failed {failed} times, retry limit ({self.retries}) reached; "
            text += "change image or reset provisioningFailCount to retry"
            return self.fail("provisioning error", text)
        hosts.clear_error(self.host)
        return COMPLETE

    async def provision(self) -> Result:
        """Deploy: `actionProvisioning`."""
        progress = await self.provisioner.provision(self.node, url=hosts.image(self.host))
        if progress.error:
            return self.fail("provisioning error", progress.error)
        if progress.dirty:
            return self.going_on(progress)
        for name in ("image", "customDeploy"):
            if wanted := self.host["spec"].get(name):
                hosts.provisioning(self.host)[name] = wanted
        self.events.append(("ProvisioningComplete", "Image provisioning completed"))
        return COMPLETE

    async def deprovision(self) -> Result:
        """Remove what was deployed: `actionDeprovisioning`."""
        if any(hosts.deployed(self.host)):
            again = self.failed_with(ADOPTION)
            adopted = await self.provisioner.adopt(self.node, restart=again)
            if adopted.error:
                return self.fail(ADOPTION, adopted.error)
            if adopted.dirty:
                return self.going_on(adopted)
        restart = self.failed_with("provisioning error")
        progress = await self.provisioner.deprovision(self.node, restart=restart)
        if progress.error:
            return self.fail("provisioning error", progress.error)
        if progress.dirty:
            return self.going_on(progress)
        hosts.provisioning(self.host)["image"] = {"url": ""}
        hosts.provisioning(self.host).pop("customDeploy", None)
        hosts.forget_settings(self.host)
        return COMPLETE

    async def manage_steady(self) -> Result:
        """Keep a host in use: `actionManageSteadyState`."""
        restart = self.failed_with(ADOPTION)
        progress = await self.provisioner.adopt(self.node, restart=restart)
        if progress.error:
            return self.fail(ADOPTION, progress.error)
        if progress.dirty:
            return self.going_on(progress)
        return await self.service() or await self.manage_power()

    async def service(self) -> Result | None:
        """Service a host in use; None: there is nothing to do: `doServiceIfNeeded`.

        The original begins when a host is switched on again; here a mark in the host's annotations
        is the change of its firmware that a HostUpdatePolicy permits.
        """
        host, status = self.host, self.host["status"]
        wanted = hosts.SERVICE in hosts.annotations(host)
        goes_on = status.get("operationalStatus") == hosts.SERVICING
        restart = self.failed_with("servicing error")
        if not (wanted or goes_on or restart):
            return None
        if not goes_on:
            status["operationalStatus"] = hosts.SERVICING
            return UPDATE
        progress = await self.provisioner.service(self.node, wanted=wanted, restart=restart)
        if progress.error:
            return self.fail("servicing error", progress.error)
        dirty = hosts.clear_error(host, hosts.SERVICING)
        if progress.started and wanted:
            del host["metadata"]["annotations"][hosts.SERVICE]
            self.changed_metadata = True
            return going_on(progress.after)
        if dirty or progress.dirty:
            return going_on(progress.after, dirty=dirty)
        hosts.clear_error(host)
        return going_on(STEADY, dirty=True)

    async def manage_power(self) -> Result:
        """Switch the host as its specification says: `manageHostPower`."""
        status, wanted = self.host["status"], bool(self.host["spec"].get("online"))
        node = await self.provisioner.nodes.get(self.node)
        powered = node is not None and node.powered
        if powered is not bool(status.get("poweredOn")):
            status["poweredOn"] = powered
            return UPDATE
        if powered is wanted:
            return going_on(STEADY)
        progress = await self.provisioner.power(self.node, on=wanted)
        if progress.dirty:
            return self.going_on(progress)
        status |= {"poweredOn": wanted, "errorCount": 0}
        return going_on(STEADY, dirty=True)

    async def power_off(self) -> Result:
        """Switch the host off before it is deleted: `actionPowerOffBeforeDeleting`."""
        if self.host["spec"].get("disablePowerOff"):
            return COMPLETE
        progress = await self.provisioner.power(self.node, on=False)
        return self.going_on(progress) if progress.dirty else COMPLETE

    async def detach(self) -> Result:
        """Remove the node, and nothing else: `detachHost`."""
        progress = await self.provisioner.delete(self.node)
        if progress.dirty:
            return going_on(progress.after)
        new = self.host["status"].get("operationalStatus") != hosts.OPERATIONAL_DETACHED
        self.host["status"]["operationalStatus"] = hosts.OPERATIONAL_DETACHED
        return going_on(UNMANAGED, dirty=new)

    async def delete(self) -> Result:
        """Remove the node, then the finalizer: `actionDeleting`."""
        progress = await self.provisioner.delete(self.node)
        if progress.dirty:
            return going_on(progress.after)
        metadata = self.host["metadata"]
        metadata["finalizers"] = [one for one in metadata["finalizers"] if one != hosts.FINALIZER]
        self.changed_metadata = True
        return GONE
