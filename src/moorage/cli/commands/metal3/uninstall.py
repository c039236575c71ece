"""`moorage metal3 uninstall`: removes what pauses hosts, then every pause of ours."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from moorage.cli.support.kubernetes import cluster_options, connection_of
from moorage.cli.support.options import example
from moorage.cli.support.output import FAILED, UNREACHABLE, USAGE, Failure, say
from moorage.cli.support.provisioning import carried_out, fault_text, moorage_url
from moorage.client.transport import token_of

if TYPE_CHECKING:
    from moorage.integrations.kubernetes.api import Connection
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
@cluster_options
@click.option(
    "--kubernetes",
    metavar="URL",
    help="Instead: address of the API server, or of kubectl proxy, which has your rights.",
)
@click.option(
    "--kubernetes-token-file", type=click.Path(), metavar="FILE", help="File with a token for it."
)
@click.option("--ca-file", type=click.Path(), metavar="FILE", help="Authorities to trust for it.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed.")
def uninstall(
    kubeconfig: str | None,
    context: str | None,
    kubernetes: str | None,
    kubernetes_token_file: str | None,
    ca_file: str | None,
    dry_run: bool,
) -> None:
    """Remove the policy or the webhook, then our pause from every host.

    Other pauses stay, and their hosts are named. Stop the governor first: it may pause a host
    again. Needs the rights to delete the policy and to patch hosts.
    """
    if kubernetes is not None and (kubeconfig or context):
        raise Failure(USAGE, "give either --kubernetes, or --kubeconfig and --context")
    if kubernetes is None and (kubernetes_token_file or ca_file):
        raise Failure(USAGE, "--kubernetes-token-file and --ca-file need --kubernetes")

    async def work() -> None:
        from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
        from moorage.integrations.metal3.uninstall import UninstallError
        from moorage.integrations.metal3.uninstall import uninstall as remove

        if kubernetes is None:
            connection = connection_of(kubeconfig, context)
        else:
            connection = _connection(kubernetes, kubernetes_token_file, ca_file)
        try:
            async with KubernetesApi(connection) as api:
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


def _connection(url: str, token_file: str | None, ca_file: str | None) -> "Connection":
    """Return the connection to an address. Raises Failure."""
    from moorage.integrations.kubernetes.api import Connection
    from moorage.integrations.pem_files import trusting

    server = moorage_url(url)
    try:
        headers = _headers(token_file)
        trusted = None if ca_file is None else trusting(ca_file)
    except (OSError, ValueError) as error:
        raise Failure(USAGE, fault_text(error)) from None
    return Connection(server, headers, trusted)


def _headers(path: str | None) -> Callable[[], Mapping[str, str]]:
    """Return what gives the credentials. Raises OSError, ValueError."""
    if path is None:
        return dict
    from moorage.integrations.rereading import FileValue

    token = FileValue(path, lambda text: token_of(text, path))
    return lambda: {"Authorization": f"Bearer {token()}"}
