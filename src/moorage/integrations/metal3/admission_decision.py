"""Which writes of a BareMetalHost get our pause.

A write gets the pause if it lets a host start work that it could not start before, so that the
pause is stored together with the reason to start. A first or another image is such a reason also
while the host is inspected or cleaned: the operator goes on to it by itself. Ironic's present work
goes on despite the pause. A write without our pause and our note replaces a whole host: the host
waits again. If only the pause is missing, somebody has removed it on purpose.
`manifests/policy.yaml` has the same rule in CEL; tests check both by one table of cases.
"""

from typing import Any

from moorage.integrations.metal3.hosts import (
    OWN,
    WAITING,
    BareMetalHost,
    Verb,
    annotations_of,
    deployment_of,
    held_verbs_of,
    pause_of,
    work_of,
)

MANAGER = "moorage"
"""The field manager of our own programs, also if other users run them."""


def pauses(
    new: BareMetalHost, old: BareMetalHost | None, user: str, governor: str, manager: str = ""
) -> bool:
    """Return whether a write gets our pause.

    Args:
        new: the host as it is written.
        old: as it was; None: it is created.
        user: who writes it.
        governor: the user name of the governor: what it writes is never changed.
        manager: the field manager of the write. A program of ours that other users run removes our
            pause with our note, too: this is no replacement.
    """
    if user == governor or pause_of(new) is not None:
        return False
    held = held_verbs_of(_as_stored(new, old))
    if old is None or pause_of(old) not in (None, OWN):
        return bool(held)  # another pause has held it back until now
    if manager != MANAGER and _is_replaced(new, old):
        return bool(held)
    # Without our pause it has its unit; if people remove our pause by hand, they mean it.
    before = held_verbs_of(old)
    if Verb.PROVISION in held & before and work_of(old) is not None:
        return deployment_of(new) != deployment_of(old)
    return bool(held) and (not before or Verb.PROVISION in held - before)


def _is_replaced(new: BareMetalHost, old: BareMetalHost) -> bool:
    """Return whether a write has forgotten our pause together with our note (`kubectl replace`)."""
    waited = pause_of(old) == OWN and WAITING in annotations_of(old)
    return waited and WAITING not in annotations_of(new)


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
