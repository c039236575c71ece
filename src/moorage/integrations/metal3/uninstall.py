"""Removes what pauses hosts, then every pause of ours; touches no other pause."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
from moorage.integrations.metal3.hosts import OWN, BareMetalHost, name_of, pause_of
from moorage.integrations.metal3.requests import HostRequests

GROUP = "/apis/admissionregistration.k8s.io"
NAME = "pause.moorage.dev"
ADMISSION = (
    (f"{GROUP}/v1/mutatingwebhookconfigurations/{NAME}",),
    *(
        tuple(f"{GROUP}/{version}/{plural}/{NAME}" for version in ("v1", "v1beta1"))
        for plural in ("mutatingadmissionpolicybindings", "mutatingadmissionpolicies")
    ),
)
"""Objects that pause hosts; a cluster has some of them. Each has the paths of all versions in which
a cluster may serve it: often two for the same object."""

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
    found: int = 0
    """Pauses of ours that are known, with those that were removed."""
    others: dict[str, str] = field(default_factory=dict)
    """The pauses of others that it had, by the names of hosts: these hosts stay paused."""


def nothing(_: Removed) -> None:
    """Show no progress."""


async def uninstall(
    api: KubernetesApi,
    *,
    dry_run: bool,
    settle: float = SETTLE_SECONDS,
    progress: Callable[[Removed], None] = nothing,
) -> Removed:
    """Remove everything that pauses hosts. Raises KubernetesError, UninstallError.

    `progress` is called with what is removed so far, after each host.
    """
    removed, hosts = Removed(), HostRequests(api)
    for paths in ADMISSION:
        there = [await (_exists(api, path) if dry_run else api.delete(path)) for path in paths]
        removed.documents += any(there)
    if dry_run:
        removed.pauses = len(await _paused(hosts, removed))
        return removed
    for _ in range(ROUNDS):
        # The last write that a policy changed may come shortly after it was deleted.
        found = await _paused(hosts, removed)
        if not found:
            await asyncio.sleep(settle)
            found = await _paused(hosts, removed)
        if not found:
            return removed
        for host in found:
            removed.pauses += await _unpaused(hosts, host)
            progress(removed)
    left = await _paused(hosts, removed)
    if left:
        raise UninstallError(
            f"{len(left)} hosts are paused again and again, such as {name_of(left[0])}:"
            " stop moorage metal3 govern first"
        )
    return removed


async def _exists(api: KubernetesApi, path: str) -> bool:
    return await api.get(path) is not None


async def _paused(hosts: HostRequests, removed: Removed) -> list[BareMetalHost]:
    """Return the hosts with our pause; lists again if the server has forgotten a page."""
    for tries in range(TRIES):
        try:
            paused = [one for one in await hosts.now() if pause_of(one) is not None]
            own = [one for one in paused if pause_of(one) == OWN]
            removed.found = removed.pauses + len(own)
            removed.others = {
                name_of(one): str(pause_of(one)) for one in paused if pause_of(one) != OWN
            }
            return own
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
