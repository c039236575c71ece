"""Which writes of BareMetalHosts get our pause: one table for the policy and for the webhook."""

import json
from dataclasses import dataclass
from typing import Any

from moorage.integrations.metal3.hosts import DETACHED, INSPECT, OWN, PAUSED, WAITING
from moorage.integrations.metal3.status import STATUS

GOVERNOR = "system:serviceaccount:moorage:moorage"
IMAGE = {"image": {"url": "http://images/a.qcow2"}}
OTHER = {"image": {"url": "http://images/b.qcow2"}}
LIVE = {"customDeploy": {"method": "install_coreos"}}
CAPM3 = {PAUSED: "metal3.io/capm3"}
OURS = {PAUSED: OWN}
REFRESH = {INSPECT: ""}
UNMANAGED = {"bmc": {"address": "", "credentialsName": ""}}
OFF = {"online": False}
EXTERNAL = {"externallyProvisioned": True}
DETAIL = {"bmc": {"address": "redfish://192.0.2.1", "credentialsName": "secret"}}


@dataclass(frozen=True)
class Case:
    """A write, and whether it gets our pause."""

    what: str
    new: dict[str, Any]
    old: dict[str, Any] | None
    pauses: bool
    user: str = "alice"
    manager: str = "kubectl-replace"

    def review(self) -> dict[str, Any]:
        """Return the request of its AdmissionReview."""
        operation = "CREATE" if self.old is None else "UPDATE"
        return {
            "uid": "review-1",
            "operation": operation,
            "kind": {"group": "metal3.io", "version": "v1alpha1", "kind": "BareMetalHost"},
            "userInfo": {"username": self.user},
            "options": {"fieldManager": self.manager},
            "object": self.new,
            "oldObject": self.old,
        }


def bmh(state: str | None = None, *parts: Any, had: Any = None, **metadata: Any) -> dict[str, Any]:
    """Return a host: `parts` go into its spec; state None: it has no status."""
    spec = {"online": True, **DETAIL}
    for part in parts:
        spec.update(part)
    found: dict[str, Any] = {"metadata": {"name": "a", "namespace": "metal3", **metadata}}
    found["spec"] = spec
    if state is not None:
        found["status"] = {"provisioning": {"state": state, **(had or {})}}
    return found


def marked(values: dict[str, str]) -> dict[str, Any]:
    """Return metadata with annotations."""
    return {"annotations": values}


_DEPLOYS = bmh("provisioning", IMAGE)
_IDLE = bmh("available")
_AGAIN = bmh("available", **marked(REFRESH))
_GONE = {"deletionTimestamp": "2026-01-01T00:00:00Z"}

FORCED = bmh("registering", **marked({DETACHED: '{"force": true}'}))
FORCED["status"]["operationalStatus"] = "detached"

NOTED = {**OURS, WAITING: 'code: "limit"'}
RAID = {"raid": {"hardwareRAIDVolumes": [{"level": "1", "name": "root"}]}}
SOFT = {"raid": {"softwareRAIDVolumes": [{"level": "1", "rootVolume": True}]}}
HINTS = {"rootDeviceHints": {"deviceName": "/dev/sdb"}}


def moved(state: str, **more: Any) -> dict[str, str]:
    """Return the annotation by which a host brings its status, as Cluster API's provider has it."""
    status = {"operationalStatus": "OK", "provisioning": {"state": state, "ID": "1", **more}}
    return {STATUS: json.dumps(status, separators=(",", ":"))}


def failed(state: str, error: str, *parts: Any, **metadata: Any) -> dict[str, Any]:
    """Return a host whose work has failed."""
    found = bmh(state, *parts, **metadata)
    found["status"] |= {"errorType": error, "errorCount": 1, "operationalStatus": "error"}
    return found


def known(host: dict[str, Any]) -> dict[str, Any]:
    """Return a host of which the operator has stored a status."""
    return {**host, "status": {**host["status"], "lastUpdated": "2026-01-01T00:00:00Z"}}


CASES = (
    *(
        Case(f"it arrives {state}", bmh(None, IMAGE, **marked(moved(state))), None, False)
        for state in ("provisioned", "externally provisioned", "deprovisioning", "deleting")
    ),
    Case("it arrives available", bmh(None, **marked(moved("available"))), None, False),
    Case("it arrives ready, with an image", bmh(None, IMAGE, **marked(moved("ready"))), None, True),
    Case("it arrives inspected", bmh(None, IMAGE, **marked(moved("inspecting"))), None, True),
    Case("it arrives, new", bmh(None, **marked(moved("registering"))), None, True),
    Case("it arrives with half a status", bmh(None, **marked({STATUS: '{"x":'})), None, True),
    Case(
        "it has arrived, and is no longer paused by its provider",
        bmh(None, IMAGE, **marked(moved("provisioned"))),
        bmh(None, IMAGE, **marked({**moved("provisioned"), **CAPM3})),
        False,
    ),
    Case(
        "an image for one that has arrived",
        bmh(None, IMAGE, **marked(moved("available"))),
        bmh(None, **marked(moved("available"))),
        True,
    ),
    Case(
        "the annotation is old",
        known(bmh("available", IMAGE, **marked(moved("provisioned")))),
        known(bmh("available", **marked(moved("provisioned")))),
        True,
    ),
    Case(
        "its own manifest replaces it while it waits",
        bmh("available", IMAGE),
        bmh("available", IMAGE, **marked(NOTED)),
        True,
    ),
    Case(
        "a manifest with other annotations replaces it while it waits",
        bmh(None, IMAGE, **marked({"a": "b"})),
        bmh(None, IMAGE, **marked(NOTED)),
        True,
    ),
    Case(
        "our pause is removed by hand, not our note",
        bmh("available", IMAGE, **marked({WAITING: 'code: "limit"'})),
        bmh("available", IMAGE, **marked(NOTED)),
        False,
    ),
    Case(
        "its own manifest without an image replaces it while it waits",
        bmh("available"),
        bmh("available", IMAGE, **marked(NOTED)),
        False,
    ),
    Case(
        "the governor lets it go",
        bmh("available", IMAGE),
        bmh("available", IMAGE, **marked(NOTED)),
        False,
        GOVERNOR,
    ),
    Case(
        "a governor that another user runs lets it go",
        bmh("available", IMAGE),
        bmh("available", IMAGE, **marked(NOTED)),
        False,
        manager="moorage",
    ),
    Case(
        "it is replaced while it is inspected, and waits for its image",
        bmh("inspecting", IMAGE),
        bmh("inspecting", IMAGE, **marked(NOTED)),
        True,
    ),
    *(
        Case(
            f"it is replaced, {error}",
            failed(state, error, *parts),
            failed(state, error, *parts, **marked(NOTED)),
            pauses,
        )
        for state, error, parts, pauses in (
            ("inspecting", "inspection error", (), True),
            ("preparing", "preparation error", (), True),
            ("provisioning", "provisioning error", (IMAGE,), True),
            ("provisioning", "provisioning error", (), False),
            ("deprovisioning", "provisioning error", (IMAGE,), False),
        )
    ),
    Case(
        "its pause is removed by hand, it has failed",
        failed("inspecting", "inspection error"),
        failed("inspecting", "inspection error", **marked(OURS)),
        False,
    ),
    Case("a RAID", bmh("available", RAID), _IDLE, True),
    Case("a RAID, off", bmh("available", RAID, OFF), bmh("available", OFF), True),
    Case("a RAID, without volumes", bmh("available", {"raid": {}}), _IDLE, False),
    Case("a null RAID", bmh("available", {"raid": None}), _IDLE, False),
    Case(
        "the RAID that it has", bmh("available", RAID, had=RAID), bmh("available", had=RAID), False
    ),
    Case("another RAID", bmh("available", SOFT, had=RAID), bmh("available", RAID, had=RAID), True),
    Case("a RAID while it is prepared", bmh("preparing", RAID), bmh("preparing"), False),
    *(
        Case(
            f"the operator notes the architecture, {state}",
            bmh(state, IMAGE, {"architecture": "x86_64"}),
            bmh(state, IMAGE),
            False,
            "system:serviceaccount:metal3:operator",
        )
        for state in ("preparing", "available", "provisioning")
    ),
    Case("hints: they prepare nothing", bmh("available", HINTS), _IDLE, False),
    Case("no hints", bmh("available", {"rootDeviceHints": {}}), _IDLE, False),
    Case(
        "the hints that it has",
        bmh("available", HINTS, had=HINTS),
        bmh("available", had=HINTS),
        False,
    ),
    Case(
        "hints that a RAID replaces",
        bmh("available", HINTS, SOFT, had=SOFT),
        bmh("available", SOFT, had=SOFT),
        False,
    ),
    Case(
        "hints of a host in use",
        bmh("provisioned", IMAGE, HINTS, had=IMAGE),
        bmh("provisioned", IMAGE, had=IMAGE),
        False,
    ),
    Case("created", bmh(), None, True),
    Case("created with an image", bmh(None, IMAGE), None, True),
    Case("created with other annotations", bmh(None, **marked({"a": "b"})), None, True),
    Case("created with empty annotations", bmh(None, **marked({})), None, True),
    Case("created without inspection", bmh(None, {"inspectionMode": "disabled"}), None, True),
    Case("created off", bmh(None, OFF), None, True),
    Case("created with a null image", bmh(None, {"image": None}), None, True),
    Case("created from a backup: its status is dropped", bmh("provisioned", IMAGE), None, True),
    Case("created without a BMC", bmh(None, UNMANAGED), None, False),
    Case("created without the field", {"metadata": {}, "spec": {"online": True}}, None, False),
    Case("created externally provisioned", bmh(None, EXTERNAL), None, False),
    Case("created paused by CAPM3", bmh(None, **marked(CAPM3)), None, False),
    Case("created paused by us", bmh(None, **marked(OURS)), None, False),
    Case(
        "created detached: it is inspected first", bmh(None, **marked({DETACHED: ""})), None, True
    ),
    Case(
        "a BMC for a host that is detached by force",
        FORCED,
        {**FORCED, "spec": {"online": True, **UNMANAGED}},
        False,
    ),
    Case("created by the governor", bmh(), None, False, GOVERNOR),
    Case("it gets a BMC", bmh("unmanaged"), bmh("unmanaged", UNMANAGED), True),
    Case("it gets a BMC before a state", bmh(), bmh(None, UNMANAGED), True),
    Case("a BMC, registering", bmh("registering"), bmh("registering", UNMANAGED), True),
    Case("a BMC, older state", bmh("match profile"), bmh("match profile", UNMANAGED), True),
    Case(
        "an image, one is noted",
        bmh("available", OTHER, had=IMAGE),
        bmh("available", had=IMAGE),
        False,
    ),
    Case("an image while it registers", bmh("registering", IMAGE), bmh("registering"), True),
    Case("an image while it is inspected", bmh("inspecting", IMAGE), bmh("inspecting"), True),
    Case("an image while it is prepared", bmh("preparing", IMAGE), bmh("preparing"), True),
    Case("a deployment while it is prepared", bmh("preparing", LIVE), bmh("preparing"), True),
    Case("on while it is inspected", bmh("inspecting", IMAGE), bmh("inspecting", IMAGE, OFF), True),
    Case("an image, though off", bmh("inspecting", IMAGE, OFF), bmh("inspecting", OFF), False),
    Case("another image", bmh("inspecting", OTHER), bmh("inspecting", IMAGE), True),
    Case("another image, though off", bmh("preparing", OTHER, OFF), bmh("preparing", IMAGE), False),
    Case("a deployment in its place", bmh("preparing", LIVE), bmh("preparing", IMAGE), True),
    Case(
        "another one before it works", bmh("registering", OTHER), bmh("registering", IMAGE), False
    ),
    Case("another one while it deploys", bmh("provisioning", OTHER), _DEPLOYS, False),
    Case("no image any more", bmh("preparing"), bmh("preparing", IMAGE), False),
    Case("a label", bmh("preparing", IMAGE, labels={}), bmh("preparing", IMAGE), False),
    Case("an image that others manage", bmh("preparing", IMAGE, EXTERNAL), bmh("preparing"), False),
    Case(
        "an image before it is deleted",
        bmh("inspecting", IMAGE, deletionTimestamp="2026-01-01T00:00:00Z"),
        bmh("inspecting", deletionTimestamp="2026-01-01T00:00:00Z"),
        False,
    ),
    Case(
        "no other pause any more while it is inspected",
        bmh("inspecting", IMAGE),
        bmh("inspecting", IMAGE, **marked(CAPM3)),
        True,
    ),
    Case("an image in place of an inspection", bmh("available", IMAGE), _AGAIN, True),
    Case("an image", bmh("available", IMAGE), _IDLE, True),
    Case("an image, older name of the state", bmh("ready", IMAGE), bmh("ready"), True),
    Case("an image, without a status in the write", bmh(None, IMAGE), _IDLE, True),
    Case("an image, with a wrong status in the write", bmh("provisioned", IMAGE), _IDLE, True),
    Case("a custom deployment", bmh("available", LIVE), _IDLE, True),
    Case("an image by the governor", bmh("available", IMAGE), _IDLE, False, GOVERNOR),
    Case("an image for a host that is off", bmh("available", IMAGE, OFF), _IDLE, False),
    Case("an image without an address", bmh("available", {"image": {"url": ""}}), _IDLE, False),
    Case("a null custom deployment", bmh("available", {"customDeploy": None}), _IDLE, False),
    Case("it is switched on", bmh("available", IMAGE), bmh("available", IMAGE, OFF), True),
    Case("idle, switched on", bmh("available"), bmh("available", OFF), False),
    Case("idle, a label", bmh("available", labels={"a": "b"}), _IDLE, False),
    Case("an image under another pause", bmh("available", IMAGE, **marked(CAPM3)), _IDLE, False),
    Case(
        "another pause is removed, there is an image",
        bmh("available", IMAGE),
        bmh("available", IMAGE, **marked(CAPM3)),
        True,
    ),
    Case("another pause is removed, idle", _IDLE, bmh("available", **marked(CAPM3)), False),
    Case(
        "our pause is removed by hand",
        bmh("available", IMAGE),
        bmh("available", IMAGE, **marked(OURS)),
        False,
    ),
    Case(
        "an image for a host whose pause a replacement forgets",
        bmh("available", IMAGE),
        bmh("available", **marked(OURS)),
        True,
    ),
    Case("granted, a label", bmh("available", IMAGE, labels={}), bmh("available", IMAGE), False),
    Case("granted, another image", bmh("available", OTHER), bmh("available", IMAGE), False),
    Case(
        "another image while one is written",
        bmh("provisioning", OTHER),
        bmh("provisioning", IMAGE),
        False,
    ),
    Case(
        "another image of a provisioned host: the old one is removed first",
        bmh("provisioned", OTHER),
        bmh("provisioned", IMAGE, had=IMAGE),
        False,
    ),
    Case("no image any more", bmh("provisioned"), bmh("provisioned", IMAGE, had=IMAGE), False),
    Case(
        "an image while one is removed", bmh("deprovisioning", IMAGE), bmh("deprovisioning"), False
    ),
    Case(
        "the custom deployment that it has",
        bmh("available", LIVE),
        bmh("available", had=LIVE),
        False,
    ),
    Case(
        "another custom deployment than it has",
        bmh("available", LIVE),
        bmh("available", had={"customDeploy": {"method": "other"}}),
        True,
    ),
    Case("it is to be inspected again", bmh("available", **marked(REFRESH)), _IDLE, True),
    Case("inspected again though off", bmh("available", OFF, **marked(REFRESH)), _IDLE, True),
    Case(
        "no inspections any more",
        bmh("available", **marked({INSPECT: "disabled"})),
        _IDLE,
        False,
    ),
    Case(
        "to be inspected again, provisioned",
        bmh("provisioned", IMAGE, **marked(REFRESH)),
        bmh("provisioned", IMAGE, had=IMAGE),
        False,
    ),
    Case(
        "not inspected yet, a label",
        bmh("available", labels={}, **marked(REFRESH)),
        bmh("available", **marked(REFRESH)),
        False,
    ),
    Case("it is detached", bmh("available", IMAGE, **marked({DETACHED: ""})), _IDLE, False),
    Case(
        "it is attached again",
        bmh("available", IMAGE),
        bmh("available", IMAGE, **marked({DETACHED: ""})),
        True,
    ),
    Case("deleted: a finalizer goes", bmh("available", IMAGE), bmh("available", **_GONE), False),
    Case(
        "external, an image",
        bmh("externally provisioned", EXTERNAL, IMAGE),
        bmh("externally provisioned", EXTERNAL),
        False,
    ),
)
