"""The work of a BareMetalHost, and the work that it starts once it is not paused.

The baremetal-operator (BMO) looks at the annotation `paused` before everything else, and does
nothing for a paused host. Source: baremetal-operator 02aa505, `host_state_machine.go`,
`baremetalhost_controller.go`, `baremetalhost_types.go`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from moorage.integrations.metal3.status import BareMetalHost as BareMetalHost
from moorage.integrations.metal3.status import mapping_of, status_of

PAUSED = "baremetalhost.metal3.io/paused"
"""The annotation that holds a host back, whatever its value. Each controller removes its own."""

OWN = "moorage"
"""The value of our own pauses."""

WAITING = "moorage.dev/waiting"
"""The annotation that says why a host with our pause waits: for people, BMO ignores it."""

DETACHED = "baremetalhost.metal3.io/detached"
INSPECT = "inspect.metal3.io"
DISABLED = "disabled"


class Verb(StrEnum):
    """The work that a host starts."""

    INSPECT = "inspect"
    """A ramdisk looks at the hardware; cleaning follows (`preparing`)."""
    PREPARE = "prepare"
    """Cleaning without an inspection."""
    PROVISION = "provision"
    """An image is written."""
    DEPROVISION = "deprovision"
    """The image is removed, and the host is cleaned; no limit can prevent this."""
    SERVICE = "service"
    """The firmware of a host in use is changed; nothing announces it, so it is only counted."""


HELD = (Verb.INSPECT, Verb.PREPARE, Verb.PROVISION)
"""The verbs that are held back; the others are counted, but never held."""

WORK = {
    "inspecting": Verb.INSPECT,
    "preparing": Verb.PREPARE,
    "provisioning": Verb.PROVISION,
    "deprovisioning": Verb.DEPROVISION,
}
"""The states in which Ironic works on a host, by `status.provisioning.state`."""

AVAILABLE = ("available", "ready")
"""The states in which a host is idle and can be provisioned; `ready` is the older name."""

LEAVING = ("powering off before delete", "deleting")
"""The states in which BMO removes a host that does not have an image."""

PROVISIONED = ("provisioned", "externally provisioned")

SERVICING = "servicing"
"""The operational status of a host in use whose firmware is changed (`doServiceIfNeeded`)."""

FAILED_WORK: Mapping[str, tuple[str, ...]] = {
    "inspecting": ("inspection error",),
    "preparing": ("preparation error",),
    "provisioning": ("provisioning error",),
    "deprovisioning": ("provisioning error", "provisioned registration error"),
}
"""By state: the errors that BMO records only when Ironic does nothing with the node any more
(`actionInspecting` and so on). Others, such as of a registration, say nothing of the node."""


def uid_of(host: BareMetalHost) -> str:
    """Return the UID of a host, by which its leases are named."""
    return str(host["metadata"]["uid"])


def name_of(host: BareMetalHost) -> str:
    """Return the name of a host with its namespace, for people."""
    metadata = host["metadata"]
    return f"{metadata.get('namespace', 'default')}/{metadata['name']}"


def annotations_of(host: BareMetalHost) -> Mapping[str, str]:
    """Return the annotations of a host."""
    return mapping_of(host["metadata"].get("annotations"))


def pause_of(host: BareMetalHost) -> str | None:
    """Return the value of the pause of a host; None: it is not paused."""
    return annotations_of(host).get(PAUSED)


def is_same_but_for_note(one: BareMetalHost, other: BareMetalHost) -> bool:
    """Return whether two versions of a host differ at most in what it says of why it waits."""
    return _without_note(one) == _without_note(other)


def state_of(host: BareMetalHost) -> str:
    """Return the provisioning state of a host; empty: BMO has not looked at it yet."""
    return str(_within(host, "status", "provisioning").get("state") or "")


def work_of(host: BareMetalHost) -> Verb | None:
    """Return what Ironic does with a host, as far as BMO knows; None: nothing.

    A pause changes nothing: what Ironic has begun goes on.
    """
    if _is_detached(host):
        return None
    servicing = status_of(host).get("operationalStatus") == SERVICING
    if servicing and state_of(host) in PROVISIONED:
        return Verb.SERVICE
    return WORK.get(state_of(host))


def has_failed(host: BareMetalHost) -> bool:
    """Return whether the work of a host has failed, so that Ironic does nothing with it.

    BMO tries again later by itself, in the same state. At that moment the error may still be
    stored: `resting.py` says when it is an old one.
    """
    return status_of(host).get("errorType") in FAILED_WORK.get(state_of(host), ())


def retry_of(host: BareMetalHost) -> Verb | None:
    """Return what a host in a working state tries again that failed; None: nothing that we hold.

    After a failed deployment BMO removes what it has left, and deploys again.
    """
    verb, leaves = work_of(host), bool(host["metadata"].get("deletionTimestamp"))
    if leaves or verb not in HELD:
        return None
    if verb is Verb.PROVISION and not _goes_on(host):
        return None
    return verb


def start_of(host: BareMetalHost) -> Verb | None:
    """Return what a host that does nothing starts once it is not paused; None: nothing."""
    state, deleted = state_of(host), bool(host["metadata"].get("deletionTimestamp"))
    if work_of(host) is not None or _is_detached(host):
        return None
    if state == "provisioned":
        return Verb.DEPROVISION if deleted or is_cancelled(host) else None
    if deleted or _within(host, "spec").get("externallyProvisioned"):
        return None
    if state in ("", "unmanaged", "registering", "match profile"):
        return _first_start(host)
    if state not in AVAILABLE:
        return None
    if annotations_of(host).get(INSPECT, DISABLED) != DISABLED:
        return Verb.INSPECT
    if has_new_settings(host):
        return Verb.PREPARE
    return Verb.PROVISION if needs_provisioning(host) else None


def occupies(host: BareMetalHost) -> bool:
    """Return whether a host works, or may start to work at any moment because it is not paused.

    This holds of one stored version of a host, whatever BMO has in its cache: before it calls
    Ironic for new work it stores the new state, and that fails if the host has changed since BMO
    read it, as it does when a pause is added. So no time needs to pass after a pause was stored.
    """
    waits = pause_of(host) is not None
    return work_of(host) is not None or (not waits and start_of(host) is not None)


def verbs_of(host: BareMetalHost, verb: Verb) -> frozenset[Verb]:
    """Return what a host does once it has begun with a verb: BMO goes on by itself to its image."""
    return frozenset({verb, Verb.PROVISION} if _goes_on(host) else {verb})


def retry_verbs_of(host: BareMetalHost, verb: Verb) -> frozenset[Verb]:
    """Return what a host does when it tries again what failed."""
    more = {Verb.DEPROVISION} if verb is Verb.PROVISION else frozenset[Verb]()
    return verbs_of(host, verb) | more


def held_verbs_of(host: BareMetalHost) -> frozenset[Verb]:
    """Return for what a host must have units before it loses its pause.

    That is what an idle host starts. One that is inspected or cleaned has its units for that, and
    goes on by itself to its image.
    """
    work = work_of(host)
    if has_failed(host) and (again := retry_of(host)) is not None:
        return verbs_of(host, again)
    if work in (Verb.INSPECT, Verb.PREPARE):
        return verbs_of(host, work) - {work}
    start = start_of(host)
    return verbs_of(host, start) if start in HELD else frozenset()


def is_leaving(host: BareMetalHost) -> bool:
    """Return whether BMO removes a host."""
    return state_of(host) in LEAVING


def may_work(host: BareMetalHost) -> bool:
    """Return whether Ironic may work on a host.

    While BMO removes a host, Ironic may still work on its node: BMO does not wait for the end of an
    inspection before it goes on to `deleting`.
    """
    return occupies(host) or is_leaving(host)


def has_new_settings(host: BareMetalHost) -> bool:
    """Return whether BMO prepares an available host again: for another RAID.

    A RAID that is not wanted any more is not compared: such a host is counted as soon as it is
    prepared. Root device hints prepare nothing: the registration, which comes first in each look,
    has taken them over already (`matchProfile`).
    """
    wanted = _plain(_within(host, "spec").get("raid"))
    return bool(wanted) and wanted != _plain(_within(host, "status", "provisioning").get("raid"))


def needs_provisioning(host: BareMetalHost) -> bool:
    """Return whether an available host is to get an image: `NeedsProvisioning` of BMO."""
    spec, had = _within(host, "spec"), _within(host, "status", "provisioning")
    if not spec.get("online"):
        return False
    new_image = _url(spec) and not _url(had)
    method = _method(spec)
    return bool(new_image or (method and method != _method(had)))


def deployment_of(host: BareMetalHost) -> tuple[str, str]:
    """Return the URL of the image that a host is to have, and the method of its deployment."""
    return _url(_within(host, "spec")), _method(_within(host, "spec"))


def is_cancelled(host: BareMetalHost) -> bool:
    """Return whether the image of a host is not wanted any more: `provisioningCancelled` of BMO."""
    spec, had = _within(host, "spec"), _within(host, "status", "provisioning")
    if _method(spec):
        if _method(had) and _method(had) != _method(spec):
            return True
        return bool(_url(had)) and _url(spec) != _url(had)
    if _method(had) or not _url(spec):
        return True
    return bool(_url(had)) and _url(spec) != _url(had)


def is_provisioned(host: BareMetalHost) -> bool:
    """Return whether a host has the image that it is to have."""
    return state_of(host) in PROVISIONED and start_of(host) is None


def _is_detached(host: BareMetalHost) -> bool:
    """Return whether Ironic does not have a host, or loses it next: `checkDetachedHost` of BMO.

    In other states the annotation waits for the end of what BMO does, unless it is forced.
    """
    if DETACHED not in annotations_of(host):
        return False
    gone = status_of(host).get("operationalStatus") == "detached"
    return gone or state_of(host) in (*AVAILABLE, *PROVISIONED)


def _goes_on(host: BareMetalHost) -> bool:
    """Return whether a host that works goes on to its image by itself."""
    spec, leaves = _within(host, "spec"), bool(host["metadata"].get("deletionTimestamp"))
    has_image = bool(_url(spec) or _method(spec)) and not spec.get("externallyProvisioned")
    return bool(spec.get("online")) and has_image and not leaves


def _plain(value: Any) -> Any:
    """Return a value without what Go omits when it stores one: zeros, empty texts and lists."""
    if isinstance(value, Mapping):
        return {name: one for name, inner in value.items() if (one := _plain(inner))}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


def _first_start(host: BareMetalHost) -> Verb | None:
    spec = _within(host, "spec")
    bmc = _within(host, "spec", "bmc")
    if not (bmc.get("address") or bmc.get("credentialsName")):
        return None  # it stays unmanaged
    disabled = DISABLED in (spec.get("inspectionMode"), annotations_of(host).get(INSPECT))
    return Verb.PREPARE if disabled else Verb.INSPECT


def _without_note(host: BareMetalHost) -> Mapping[str, Any]:
    annotations = {name: one for name, one in annotations_of(host).items() if name != WAITING}
    other = ("annotations", "managedFields", "resourceVersion")
    kept = {name: one for name, one in host["metadata"].items() if name not in other}
    return {**host, "metadata": {**kept, "annotations": annotations}}


def _within(host: BareMetalHost, *names: str) -> Mapping[str, Any]:
    """Return the object at a path; empty if there is none."""
    found: Any = host
    if names[0] == "status":
        found, names = status_of(host), names[1:]
    for name in names:
        found = mapping_of(found).get(name)
    return mapping_of(found)


def _url(part: Mapping[str, Any]) -> str:
    return str(_within(part, "image").get("url") or "")


def _method(part: Mapping[str, Any]) -> str:
    return str(_within(part, "customDeploy").get("method") or "")
