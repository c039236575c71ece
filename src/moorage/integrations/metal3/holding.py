"""Holds the hosts of a namespace, or of one Cluster, and lets them go again.

The annotation of a host goes with it when it moves to another cluster; that of the namespace holds
hosts that are created later.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
from moorage.integrations.metal3.holds import CLUSTER, HOLD, held_by, namespace_path
from moorage.integrations.metal3.hosts import (
    OWN,
    BareMetalHost,
    annotations_of,
    name_of,
    pause_of,
)
from moorage.integrations.metal3.mirror import list_path
from moorage.integrations.metal3.status import STATUS


class HoldError(Exception):
    """Some hosts were not changed; the message says how many, and why."""


@dataclass(frozen=True)
class Changed:
    """How many hosts were changed, and how many there are."""

    changed: int
    hosts: int


async def hold(api: KubernetesApi, namespace: str, cluster: str | None, reason: str) -> Changed:
    """Let no host start that waits, now or later; return how many were changed.

    Without a Cluster the namespace is held, too, and with it all hosts that are created later.

    A host with our pause gets its status as an annotation, too, as Cluster API's provider does it
    for those that it pauses itself: a move to another cluster does not carry the status.

    Raises KubernetesError: nothing was read; HoldError: some hosts were not changed.
    """
    refused = None
    try:
        if cluster is None:
            await _hold_namespace(api, namespace, reason)
    except HoldError as error:
        refused = error  # the hosts that are there can be held all the same
    changed = await _annotated(
        api,
        namespace,
        cluster,
        lambda host: {HOLD: reason, **_saved_status(host)},
    )
    if refused is not None:
        raise refused
    return changed


async def resume(api: KubernetesApi, namespace: str, cluster: str | None) -> Changed:
    """Let hosts start again that were held. Raises as `hold`."""

    def changes(host: BareMetalHost) -> Mapping[str, str | None]:
        return {HOLD: None} if HOLD in annotations_of(host) else {}

    if cluster is None:
        await _hold_namespace(api, namespace, None)
    return await _annotated(api, namespace, cluster, changes)


async def _hold_namespace(api: KubernetesApi, namespace: str, reason: str | None) -> None:
    """Write why a namespace is held; None: it is not held any more. Raises HoldError."""
    path = namespace_path(namespace)
    try:
        found = await api.get(path)
        if found is not None and held_by(found) != reason:
            await api.merge(path, {"metadata": {"annotations": {HOLD: reason}}})
    except KubernetesError as error:
        which = (
            "hosts that are created later are not held" if reason is not None else "it stays held"
        )
        raise HoldError(f"the namespace was not changed, {which}: {error}") from None


async def _annotated(
    api: KubernetesApi,
    namespace: str,
    cluster: str | None,
    changes: Callable[[BareMetalHost], Mapping[str, str | None]],
) -> Changed:
    query = {} if cluster is None else {"labelSelector": f"{CLUSTER}={cluster}"}
    hosts = await api.all(list_path(namespace), **query)
    changed, why = 0, ""
    failed: list[str] = []
    for host in hosts:
        wanted = changes(host)
        if not wanted:
            continue
        path = f"{list_path(namespace)}/{host['metadata']['name']}"
        try:
            await api.merge(path, {"metadata": {"annotations": dict(wanted)}})
            changed += 1
        except KubernetesError as error:
            failed.append(name_of(host))
            why = str(error)
    if failed:
        raise HoldError(
            f"{len(failed)} of {len(hosts)} hosts were not changed, such as {failed[0]}: {why}."
            " Run the command again"
        )
    return Changed(changed, len(hosts))


def _saved_status(host: BareMetalHost) -> Mapping[str, str]:
    """Return the annotation that carries the status of a host to another cluster, if it must.

    Without its hardware, which is in an object of its own, as Cluster API's provider has it.
    """
    status = host.get("status")
    if pause_of(host) != OWN or not isinstance(status, Mapping) or not status.get("lastUpdated"):
        return {}
    kept = {name: one for name, one in status.items() if name != "hardware"}
    return {STATUS: json.dumps(kept, separators=(",", ":"))}
