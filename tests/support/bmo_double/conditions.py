"""The conditions of a host (`computeConditions`), without its health and failures of its power.

They note the generation of the specification: so each change of it makes the operator store the
status, and `lastUpdated` with it, although nothing else happens.
"""

from tests.support.bmo_double.hosts import Object, state

HEALTHY = "Healthy"
REASONS = {
    "registering": "Registering",
    "preparing": "Preparing",
    "provisioning": "Provisioning",
    "deprovisioning": "Deprovisioning",
    "inspecting": "Inspecting",
    "powering off before delete": "PoweringOffBeforeDelete",
    "deleting": "Deleting",
}
"""Why a host makes progress, by its state."""


def update(host: Object, now: str) -> bool:
    """Set the conditions; return whether one of them has changed."""
    status, generation = host.setdefault("status", {}), host["metadata"].get("generation", 0)
    held = {one["type"]: one for one in status.get("conditions", ())}
    found = []
    for kind, (value, reason) in sorted(_wanted(host).items()):
        old = held.get(kind, {})
        if kind == HEALTHY and old:
            found.append(old)  # it is set once, as long as nothing is known of it
            continue
        when = old["lastTransitionTime"] if old.get("status") == value else now
        new = {"type": kind, "status": value, "reason": reason, "message": ""}
        found.append({**new, "observedGeneration": generation, "lastTransitionTime": when})
    changed = found != status.get("conditions", [])
    status["conditions"] = found
    return bool(changed)


def _wanted(host: Object) -> dict[str, tuple[str, str]]:
    now, operational = state(host), host.get("status", {}).get("operationalStatus")
    managed = now not in ("", "unmanaged", "registering")
    used = now in ("provisioned", "externally provisioned")
    idle = now in ("available", "ready")
    registering = "RegistrationFailed" if operational == "error" else "Registering"
    unmanaged = registering if now == "registering" else "NotManaged"
    not_used = ("False", "NotProvisioned")
    found = {
        "Manageable": ("True", "Manageable") if managed else ("False", unmanaged),
        "AvailableForProvisioning": ("True", "Available") if idle else ("False", "NotAvailable"),
        "Provisioned": ("True", "Provisioned") if used else not_used,
        "Ready": ("True", "Provisioned") if used else not_used,
        "Progressing": ("True", REASONS[now]) if now in REASONS else ("False", "NotProgressing"),
        HEALTHY: ("Unknown", "Unknown"),
    }
    ready = {"error": "Error", "servicing": "Servicing", "detached": "Detached"}
    if operational in ready:
        found["Ready"] = ("False", ready[operational])
    if operational == "detached":
        found["Progressing"] = ("False", "Detached")
    return found
