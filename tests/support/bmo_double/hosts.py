"""What a BareMetalHost says (`baremetalhost_types.go`)."""

from typing import Any

Object = dict[str, Any]

PAUSED = "baremetalhost.metal3.io/paused"
INSPECT = "inspect.metal3.io"
DETACHED = "baremetalhost.metal3.io/detached"
OPERATIONAL_DETACHED = "detached"
STATUS = "baremetalhost.metal3.io/status"
SERVICE = "double/service"
"""The double's own: the firmware of a host in use is to be changed."""
SERVICING = "servicing"
BORN = ("", "unmanaged", "registering")
HARD, SOFT = "hardwareRAIDVolumes", "softwareRAIDVolumes"
PROFILE, HINTS = "unknown", {"deviceName": "/dev/sda"}
"""The hardware profile of hosts that name none, and its root device hints."""
FINALIZER = "baremetalhost.metal3.io"


EMPTY_STATUS: Object = {
    "errorCount": 0,
    "errorMessage": "",
    "operationalStatus": "",
    "poweredOn": False,
    "provisioningFailCount": 0,
}
EMPTY_PROVISIONING: Object = {"ID": "", "state": "", "image": {"url": ""}}
"""The fields that the original always writes, and that the schema of hosts requires."""


def whole_status(host: Object) -> Object:
    """Return the status with all fields that the original writes."""
    status = host.get("status", {})
    provisioning = {**EMPTY_PROVISIONING, **status.get("provisioning", {})}
    return {**EMPTY_STATUS, **status, "provisioning": provisioning}


def annotations(host: Object) -> dict[str, str]:
    """Return the annotations, which may be missing."""
    found: dict[str, str] = host["metadata"].get("annotations") or {}
    return found


def state(host: Object) -> str:
    """Return the provisioning state; empty: the host is new."""
    return str(provisioning(host).get("state", ""))


def provisioning(host: Object) -> Object:
    """Return the part of the status about provisioning, for changing."""
    found: Object = host.setdefault("status", {}).setdefault("provisioning", {})
    return found


def image(host: Object) -> str:
    """Return the address of the image that is wanted; empty: none."""
    return str((host["spec"].get("image") or {}).get("url", ""))


def method(host: Object) -> str:
    """Return the custom deploy that is wanted; empty: none."""
    return str((host["spec"].get("customDeploy") or {}).get("method", ""))


def deployed(host: Object) -> tuple[str, str]:
    """Return the image and the custom deploy that were deployed."""
    found = provisioning(host)
    url = (found.get("image") or {}).get("url", "")
    return str(url), str((found.get("customDeploy") or {}).get("method", ""))


def has_bmc(host: Object) -> bool:
    """Return whether the host can be managed: `HasBMCDetails`."""
    bmc = host["spec"].get("bmc") or {}
    return bool(bmc.get("address") or bmc.get("credentialsName"))


def needs_provisioning(host: Object) -> bool:
    """Return whether there is something new to deploy: `NeedsProvisioning`."""
    url, custom = deployed(host)
    if not host["spec"].get("online"):
        return False
    return bool((image(host) and not url) or (method(host) and custom != method(host)))


def cancelled(host: Object) -> bool:
    """Return whether what was deployed is no longer wanted: `provisioningCancelled`."""
    url, custom = deployed(host)
    if method(host):
        return bool((custom and custom != method(host)) or (url and url != image(host)))
    if custom or not image(host):
        return True
    return bool(url and url != image(host))


def _given(part: Object, name: str) -> Any:
    found = part.get(name)
    return found or None


def has_new_settings(host: Object) -> bool:
    """Return whether a RAID is to be applied or removed: `saveHostProvisioningSettings`.

    Root device hints are none: each registration, which comes first, has taken them over already
    (`matchProfile`).
    """
    return _wanted_raid(host) != _volumes(provisioning(host).get("raid"))


def keep_settings(host: Object) -> None:
    """Note which settings are applied: `saveHostProvisioningSettings`."""
    if (found := _wanted_raid(host)) is not None:
        provisioning(host)["raid"] = found


def _volumes(raid: Object | None) -> Object | None:
    """Return a RAID with both lists, as Go stores them: null is not an empty list."""
    return None if raid is None else {name: raid.get(name) for name in (HARD, SOFT)}


def _wanted_raid(host: Object) -> Object | None:
    """Return what is applied. Without a wish, hardware RAID stays, and software RAID is removed."""
    wanted, had = _volumes(host["spec"].get("raid")), provisioning(host).get("raid")
    if wanted is None or wanted == _volumes({}):
        return wanted if had is None else {HARD: had.get(HARD) or None, SOFT: []}
    return wanted


def match_profile(host: Object) -> bool:
    """Take over the profile and the root device hints; return whether they are new."""
    status, had = host["status"], provisioning(host)
    before = (status.get("hardwareProfile"), had.get("rootDeviceHints"))
    status["hardwareProfile"] = host["spec"].get("hardwareProfile") or PROFILE
    volumes = (host["spec"].get("raid") or {}).get("softwareRAIDVolumes") or []
    if any(one.get("rootVolume") for one in volumes):
        had.pop("rootDeviceHints", None)
    else:
        had["rootDeviceHints"] = host["spec"].get("rootDeviceHints") or HINTS
    return before != (status["hardwareProfile"], had.get("rootDeviceHints"))


def has_new_hints(host: Object) -> bool:
    """Return whether root device hints are wanted that are not taken over yet."""
    hints = _given(host["spec"], "rootDeviceHints")
    return hints is not None and hints != _given(provisioning(host), "rootDeviceHints")


def forget_settings(host: Object) -> None:
    """Forget those that are applied again later: `clearHostProvisioningSettings`."""
    found = provisioning(host)
    found.pop("rootDeviceHints", None)
    if raid := found.get("raid"):
        found["raid"] = {**raid, SOFT: None}


def inspection_disabled(host: Object) -> bool:
    """Return whether the host is not to be inspected."""
    off = host["spec"].get("inspectionMode") == "disabled"
    return off or annotations(host).get(INSPECT) == "disabled"


def inspection_wanted(host: Object) -> bool:
    """Return whether an annotation asks for an inspection: `inspectionRefreshRequested`."""
    return annotations(host).get(INSPECT, "disabled") != "disabled"


def something_to_start(host: Object) -> bool:
    """Return whether the operator begins to inspect, clean or deploy a host without a pause."""
    found, metadata = state(host), host["metadata"]
    if metadata.get("deletionTimestamp"):
        return False
    if found in BORN:
        return has_bmc(host)
    if found != "available" or DETACHED in annotations(host):
        return False
    return inspection_wanted(host) or has_new_settings(host) or needs_provisioning(host)


FAILURES = {
    "inspecting": ("inspection error",),
    "preparing": ("preparation error",),
    "provisioning": ("provisioning error",),
    "deprovisioning": ("provisioning error", "provisioned registration error"),
}
"""By state: the errors that are recorded while nothing works on the node (`action...`)."""


def backs_off(host: Object) -> bool:
    """Return whether the work of a host has failed, and the operator tries again later."""
    kind = host.get("status", {}).get("errorType")
    return kind in FAILURES.get(state(host), ())


def may_be_paused(host: Object) -> bool:
    """Return whether our pause has a reason: what a host starts, or the image it goes on to."""
    goes_on = state(host) in ("inspecting", "preparing") and needs_provisioning(host)
    leaves = bool(host["metadata"].get("deletionTimestamp"))
    tries_again = backs_off(host) and state(host) != "deprovisioning"
    return something_to_start(host) or ((goes_on or tries_again) and not leaves)


def clear_error(host: Object, operational: str = "OK") -> bool:
    """Remove the error; return whether that changes the status: `clearError`."""
    status = host["status"]
    before = dict(status)
    status["operationalStatus"] = operational
    status.pop("errorType", None)
    status["errorMessage"] = ""
    return bool(status != before)


def set_error(host: Object, kind: str, message: str) -> int:
    """Record an error; return how many there were in a row: `setErrorMessage`."""
    status = host["status"]
    count = int(status.get("errorCount", 0)) + 1
    status |= {"errorType": kind, "errorMessage": message, "errorCount": count}
    status["operationalStatus"] = "error"
    return count
