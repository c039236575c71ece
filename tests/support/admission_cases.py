"""Which writes of BareMetalHosts get our pause: one table for the policy and for the webhook."""

from dataclasses import dataclass
from typing import Any

from moorage.integrations.metal3.hosts import DETACHED, INSPECT, OWN, PAUSED

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

    def review(self) -> dict[str, Any]:
        """Return the request of its AdmissionReview."""
        operation = "CREATE" if self.old is None else "UPDATE"
        return {
            "uid": "review-1",
            "operation": operation,
            "kind": {"group": "metal3.io", "version": "v1alpha1", "kind": "BareMetalHost"},
            "userInfo": {"username": self.user},
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


_IDLE = bmh("available")
_AGAIN = bmh("available", **marked(REFRESH))
_GONE = {"deletionTimestamp": "2026-01-01T00:00:00Z"}

FORCED = bmh("registering", **marked({DETACHED: '{"force": true}'}))
FORCED["status"]["operationalStatus"] = "detached"

CASES = (
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
    Case("another image", bmh("inspecting", OTHER), bmh("inspecting", IMAGE), False),
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
