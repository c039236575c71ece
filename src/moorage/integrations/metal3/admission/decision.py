"""Which writes of a BareMetalHost get our pause.

A write that lets a host start something that it could not start before, so that the pause is
stored together with the reason to start. An image is such a reason also while the host is inspected
or cleaned: the operator goes on to the image by itself. What Ironic does goes on despite the pause.
The same rule stands in CEL in `manifests/policy.yaml`; tests hold both to one table of cases.
"""

from typing import Any

from moorage.integrations.metal3.hosts import (
    OWN,
    BareMetalHost,
    Verb,
    held_verbs_of,
    pause_of,
)


def pauses(new: BareMetalHost, old: BareMetalHost | None, user: str, governor: str) -> bool:
    """Return whether a write gets our pause. `old` None: the host is created.

    `governor` is the user name of the governor: what it writes is never changed.
    """
    if user == governor or pause_of(new) is not None:
        return False
    held = held_verbs_of(_as_stored(new, old))
    if old is None or pause_of(old) not in (None, OWN):
        return bool(held)  # another pause has held it back until now
    # Without our pause it has its unit; if people remove our pause by hand, they mean it.
    before = held_verbs_of(old)
    return bool(held) and (not before or Verb.PROVISION in held - before)


def _as_stored(new: BareMetalHost, old: BareMetalHost | None) -> dict[str, Any]:
    """Return a host as it will be stored.

    Admission sees the status and the time of deletion that the client has sent; the API server
    drops them later and keeps its own.
    """
    metadata = dict(new["metadata"])
    metadata.pop("deletionTimestamp", None)
    if old is not None and "deletionTimestamp" in old["metadata"]:
        metadata["deletionTimestamp"] = old["metadata"]["deletionTimestamp"]
    return {**new, "metadata": metadata, "status": (old or {}).get("status") or {}}
