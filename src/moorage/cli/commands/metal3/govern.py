"""`moorage metal3 govern`: starts BareMetalHosts when there is room, and counts all other work."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.kubernetes import cluster_options, connection_of
from moorage.cli.support.options import (
    SecondsRange,
    example,
    listening,
    metrics_option,
)
from moorage.cli.support.output import UNREACHABLE, USAGE, Failure, say
from moorage.cli.support.provisioning import (
    FILE,
    SERVER_OPTIONS,
    carried_out,
    interval_option,
    moorage_url,
    one_pass,
    pools_checked,
    rules_of,
    server_of,
    stop_event,
    system_name,
    token_to_use,
    until_reached,
    with_options,
)
from moorage.integrations.clock import first_of

if TYPE_CHECKING:
    from moorage.integrations.kubernetes.api import KubernetesApi
    from moorage.integrations.metal3.governor import Governor


@click.command(epilog=example("moorage metal3 govern --pool deploy"))
@click.option("--pool", metavar="NAME", help="Pool of which each busy host needs one unit.")
@click.option("--rules", **FILE, help="File with rules that choose the pools, instead of --pool.")
@partial(with_options, SERVER_OPTIONS)
@cluster_options
@click.option("--namespace", metavar="NAME", help="Govern one namespace; by default all.")
@click.option(
    "--cluster-name",
    metavar="NAME",
    help="Name of this cluster, shown as a label of its leases.",
)
@interval_option(", if nothing changes")
@click.option(
    "--list-interval",
    type=SecondsRange(5, 3600),
    default=60.0,
    metavar="SECONDS",
    help="Seconds between two lists of all hosts, in addition to the watch; 60 by default.",
)
@click.option("--once", is_flag=True, help="Make one pass and exit.")
@metrics_option
def govern(
    namespace: str | None,
    cluster_name: str | None,
    interval: float,
    list_interval: float,
    once: bool,
    metrics_listen: str | None,
    **words: Any,
) -> None:
    """Start hosts when there is room; count all other work.

    A host waits while it has our pause, baremetalhost.metal3.io/paused: moorage, which is removed
    as soon as there is room. Runs until Ctrl-C or SIGTERM.
    """
    from moorage.integrations.kubernetes.names import LABEL_TEXT, is_label
    from moorage.integrations.metal3.rules import Rules, read

    if namespace is not None and not is_label(namespace):
        raise Failure(USAGE, f"--namespace must be {LABEL_TEXT}")
    name = system_name(cluster_name, "--cluster-name")
    url, token = moorage_url(server_of(words)), token_to_use(words)
    rules = rules_of(words["pool"], words["rules"], Rules.of_pool, read)

    async def work() -> None:
        from moorage.integrations.kubernetes.api import KubernetesApi
        from moorage.integrations.lease_api import LeaseApi
        from moorage.integrations.metal3.governor import Governor
        from moorage.integrations.metal3.mirror import HostMirror
        from moorage.integrations.metal3.reconcile import HOSTS, Picture
        from moorage.integrations.metal3.requests import HostRequests
        from moorage.integrations.metrics_server import metrics_served, ready_seconds
        from moorage.integrations.provisioning.host_leases import HostLeases
        from moorage.integrations.provisioning.pass_metrics import GovernorMetrics
        from moorage.integrations.provisioning.passes import passes

        connection = connection_of(words["kubeconfig"], words["context"])
        sockets = listening(metrics_listen)
        stop = stop_event()
        async with LeaseApi(url, token) as leases, KubernetesApi(connection) as api:
            mirror = None if once else HostMirror(api, namespace, list_interval)
            requests = HostRequests(api, namespace, mirror)
            metrics = GovernorMetrics(HOSTS, Picture())
            trouble = partial(metrics.trouble, ready_seconds(interval))

            async def prepared() -> Governor:
                await pools_checked(leases, rules.pools, url)
                own = HostLeases(leases, await _installation(api, namespace, name))
                return Governor(own, requests, rules, metrics=metrics)

            async with metrics_served(metrics.registry, sockets, trouble):
                if mirror is None:
                    return await _once(await prepared(), api.url)
                found = await until_reached(prepared, metrics.failed, stop, interval)
                if found is not None:
                    ready = partial(_say_seen, found, api.url)
                    async with mirror:
                        await first_of(stop, mirror.tried)
                        await passes(found, ready, stop, interval, mirror.changed)

    carried_out(work, "kubernetes")


async def _installation(api: "KubernetesApi", namespace: str | None, name: str | None) -> str:
    """Return whose the leases of this governor are. Raises Failure."""
    from moorage.integrations.kubernetes.api import KubernetesError
    from moorage.integrations.metal3.cluster import installation_of_cluster

    try:
        return await installation_of_cluster(api, namespace, name)
    except KubernetesError as error:
        raise Failure(UNREACHABLE, f"cannot identify {api.url}: {error}") from None


async def _once(governor: "Governor", cluster: str) -> None:
    """Make one pass, and print what it has seen. Raises Failure."""
    await one_pass(governor)
    _say_seen(governor, cluster)


def _say_seen(governor: "Governor", cluster: str) -> None:
    """Print the line about the first pass that has succeeded."""
    seen = governor.picture
    say(f"moorage: governing {cluster} ({len(seen.hosts)} hosts, {len(seen.busy)} busy)")
