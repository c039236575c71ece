"""Proves that new hosts get our pause: a host is created as a dry run, and comes back with it.

An API server learns of a policy or a webhook some time after it was stored, each server of a
cluster by itself: until then hosts start without a pause.
"""

import asyncio
from http import HTTPStatus
from typing import Any

from moorage.integrations.clock import monotonic
from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
from moorage.integrations.metal3.hosts import OWN, pause_of
from moorage.integrations.metal3.mirror import list_path
from moorage.integrations.metal3.uninstall import ADMISSION

PROOFS = 5
"""This many dry runs in a row must come back with our pause, each on its own connection: behind
one address there may be several API servers."""

AGAIN_SECONDS = 0.2
"""How long after the last dry run the next one is sent."""

LEAST_SECONDS = 5.0
"""How long the answer to a dry run may take in any case. If a webhook hangs, it takes longer."""

TRIAL: dict[str, Any] = {
    "apiVersion": "metal3.io/v1alpha1",
    "kind": "BareMetalHost",
    "metadata": {"generateName": "moorage-wait-"},
    "spec": {
        "online": False,
        "bootMACAddress": "02:00:00:00:00:01",
        "bmc": {"address": "redfish://192.0.2.1/redfish/v1/Systems/1", "credentialsName": "none"},
    },
}
"""A host that metal3 would inspect; it is never stored."""


class NotPausedError(Exception):
    """New hosts do not get our pause in time; the message says why, as far as it is known."""


async def until_paused(api: KubernetesApi, namespace: str, seconds: float) -> None:
    """Return when new hosts of a namespace get our pause.

    Raises:
        NotPausedError: they did not within this time.
        KubernetesError: the server refuses the dry run, or has not answered at the end.
    """
    until, proofs = monotonic() + seconds, 0
    trouble: KubernetesError | None = None
    while proofs < PROOFS:
        try:
            async with asyncio.timeout(max(until - monotonic(), LEAST_SECONDS)):
                found = await api.create(list_path(namespace), TRIAL, dry_run=True)
            proofs, trouble = (proofs + 1 if pause_of(found) == OWN else 0), None
        except TimeoutError:
            raise KubernetesError(
                f"no answer from {api.url} in time to a host that was created as a dry run;"
                " does a webhook not answer?"
            ) from None
        except KubernetesError as error:
            if not _may_pass(error):
                raise
            proofs, trouble = 0, error
        if not proofs and monotonic() >= until:
            raise trouble or NotPausedError(await _why(api))
        if proofs < PROOFS:
            await asyncio.sleep(AGAIN_SECONDS)


def _may_pass(error: KubernetesError) -> bool:
    """Return whether to try again: the server is not ready, or does not reach the webhook yet."""
    return error.is_of_server or (error.status or 0) >= HTTPStatus.INTERNAL_SERVER_ERROR


async def _why(api: KubernetesApi) -> str:
    """Return why a host has no pause. Raises KubernetesError."""
    for path in (path for paths in ADMISSION for path in paths):
        try:
            if await api.get(path) is not None:
                return (
                    "a new host gets no pause, although the cluster has"
                    f" {path.split('/', 3)[3]}: does this version of Kubernetes apply it?"
                )
        except KubernetesError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
    return (
        "a new host gets no pause: the cluster has neither the policy nor the webhook; apply the"
        " manifests of moorage metal3 install"
    )
