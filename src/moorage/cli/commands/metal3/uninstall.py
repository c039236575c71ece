"""`moorage metal3 uninstall`: removes what pauses hosts, then every pause of ours."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.kubernetes import any_cluster_options, any_connection
from moorage.cli.support.options import example
from moorage.cli.support.output import FAILED, UNREACHABLE, Failure, say
from moorage.cli.support.provisioning import carried_out

if TYPE_CHECKING:
    from moorage.integrations.metal3.uninstall import Removed

PROGRESS_SECONDS = 5.0
"""The least time between two lines about progress."""

NAMED_MAX = 20
"""Hosts with the pause of another controller that are named."""


@click.command(
    epilog=example(
        "moorage metal3 uninstall --kubeconfig ~/.kube/config --dry-run",
        "moorage metal3 uninstall --kubernetes http://127.0.0.1:8001",
    )
)
@any_cluster_options
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and change nothing.")
def uninstall(
    dry_run: bool,
    **words: Any,
) -> None:
    """Remove the policy or the webhook, then our pause from every host.

    Other pauses stay, and their hosts are named. Stop the governor first: it may pause a host
    again. Needs the rights to delete the policy and to patch hosts.
    """
    connect = any_connection(words)

    async def work() -> None:
        from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
        from moorage.integrations.metal3.uninstall import UninstallError
        from moorage.integrations.metal3.uninstall import uninstall as remove

        try:
            async with KubernetesApi(connect()) as api:
                removed = await remove(api, dry_run=dry_run, progress=_progress())
        except UninstallError as error:
            raise Failure(FAILED, str(error)) from None
        except KubernetesError as error:
            raise Failure(UNREACHABLE if error.status is None else FAILED, str(error)) from None
        verb = "would remove" if dry_run else "removed"
        say(f"{verb}: {removed.documents} admission objects, {removed.pauses} pauses of hosts")
        _name_others(removed)

    carried_out(work, "kubernetes")


def _progress() -> "Callable[[Removed], None]":
    """Return what says from time to time how many pauses are removed."""
    last = time.monotonic()

    def show(removed: "Removed") -> None:
        nonlocal last
        if time.monotonic() - last >= PROGRESS_SECONDS:
            last = time.monotonic()
            say(f"removed {removed.pauses} of {removed.found} pauses of hosts", err=True)

    return show


def _name_others(removed: "Removed") -> None:
    """Name the hosts that other controllers still pause."""
    for name, pause in sorted(removed.others.items())[:NAMED_MAX]:
        say(f"{name} stays paused by another controller: {pause}")
    if (more := len(removed.others) - NAMED_MAX) > 0:
        say(f"{more} more hosts stay paused by other controllers")
