"""Removes what pauses hosts, then every pause of ours; touches no other pause."""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus

from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
from moorage.integrations.metal3.hosts import OWN, BareMetalHost, name_of, pause_of
from moorage.integrations.metal3.requests import HostRequests

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
    removed, hosts = Removed(), HostRequests(api)
    for path in ADMISSION:
        there = await (_exists(api, path) if dry_run else api.delete(path))
        removed.documents += there
    if dry_run:
        removed.pauses = len(await _paused(hosts))
        return removed
    for _ in range(ROUNDS):
        # The last write that a policy changed may come shortly after it was deleted.
        found = await _paused(hosts)
        if not found:
            await asyncio.sleep(settle)
            found = await _paused(hosts)
        if not found:
            return removed
        for host in found:
            removed.pauses += await _unpaused(hosts, host)
    left = await _paused(hosts)
    if left:
        raise UninstallError(
            f"{len(left)} hosts are paused again and again, such as {name_of(left[0])}:"
            " stop moorage metal3 govern first"
        )
    return removed


async def _exists(api: KubernetesApi, path: str) -> bool:
    return await api.get(path) is not None


async def _paused(hosts: HostRequests) -> list[BareMetalHost]:
    """Return the hosts with our pause; lists again if the server has forgotten a page."""
    for tries in range(TRIES):
        try:
            return [one for one in await hosts.all() if pause_of(one) == OWN]
        except KubernetesError as error:
            if error.status != HTTPStatus.GONE or tries == TRIES - 1:
                raise
    raise AssertionError("unreachable")


async def _unpaused(hosts: HostRequests, listed: BareMetalHost) -> bool:
    """Remove our pause from a host; return whether it was there."""
    host: BareMetalHost | None = listed
    for _ in range(TRIES):
        if host is None or pause_of(host) != OWN:
            return False
        if await hosts.unpause(host):
            return True
        host = await hosts.again(host)
    return False  # the next round tries it again
