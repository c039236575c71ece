"""Removes what pauses hosts, then every pause of ours; touches no other pause."""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus

from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
from moorage.integrations.metal3.hosts import OWN, PAUSED, BareMetalHost, name_of, pause_of

GROUP = "/apis/admissionregistration.k8s.io"
NAME = "pause.moorage.dev"
ADMISSION = (
    f"{GROUP}/v1/mutatingwebhookconfigurations/{NAME}",
    f"{GROUP}/v1/mutatingadmissionpolicybindings/{NAME}",
    f"{GROUP}/v1/mutatingadmissionpolicies/{NAME}",
    f"{GROUP}/v1beta1/mutatingadmissionpolicybindings/{NAME}",
    f"{GROUP}/v1beta1/mutatingadmissionpolicies/{NAME}",
)
"""What pauses hosts; a cluster has some of them."""

HOSTS = "/apis/metal3.io/v1alpha1"
ALL = f"{HOSTS}/baremetalhosts"

SETTLE_SECONDS = 5.0
"""How long API servers may still use a policy that was deleted."""

ROUNDS = 10
"""How often hosts are listed until none has our pause."""

TRIES = 10
"""How often a host is tried that others change at the same moment."""


class UninstallError(Exception):
    """Some hosts are still paused by us; the message says which and what to do."""


@dataclass
class Removed:
    """How many were removed, or would be: documents of admission, and pauses of ours."""

    documents: int = 0
    pauses: int = 0


async def uninstall(
    api: KubernetesApi, *, dry_run: bool, settle: float = SETTLE_SECONDS
) -> Removed:
    """Remove everything that pauses hosts. Raises KubernetesError, UninstallError."""
    removed = Removed()
    for path in ADMISSION:
        there = await (_exists(api, path) if dry_run else api.delete(path))
        removed.documents += there
    if dry_run:
        removed.pauses = len(await _paused(api))
        return removed
    for _ in range(ROUNDS):
        # The last write that a policy changed may come shortly after it was deleted.
        found = await _paused(api)
        if not found:
            await asyncio.sleep(settle)
            found = await _paused(api)
        if not found:
            return removed
        for host in found:
            removed.pauses += await _unpaused(api, host)
    left = await _paused(api)
    if left:
        raise UninstallError(
            f"{len(left)} hosts are paused again and again, such as {name_of(left[0])}:"
            " stop moorage metal3 govern first"
        )
    return removed


async def _exists(api: KubernetesApi, path: str) -> bool:
    return await api.get(path) is not None


async def _paused(api: KubernetesApi) -> list[BareMetalHost]:
    """Return the hosts with our pause; lists again if the server has forgotten a page."""
    for tries in range(TRIES):
        try:
            return [one for one in await api.all(ALL) if pause_of(one) == OWN]
        except KubernetesError as error:
            if error.status != HTTPStatus.GONE or tries == TRIES - 1:
                raise
    raise AssertionError("unreachable")


async def _unpaused(api: KubernetesApi, listed: BareMetalHost) -> bool:
    """Remove our pause from a host; return whether it was there."""
    metadata = listed["metadata"]
    path = f"{HOSTS}/namespaces/{metadata['namespace']}/baremetalhosts/{metadata['name']}"
    host: BareMetalHost | None = listed
    for _ in range(TRIES):
        if host is None or pause_of(host) != OWN:
            return False
        version = host["metadata"]["resourceVersion"]
        try:
            await api.merge(
                path, {"metadata": {"resourceVersion": version, "annotations": {PAUSED: None}}}
            )
            return True
        except KubernetesError as error:
            if error.status not in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
                raise
        host = await api.get(path)
    return False  # the next round tries it again
