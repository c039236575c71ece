"""`moorage metal3 govern`: starts BareMetalHosts when there is room, and counts all other work."""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.ironic import (
    carried_out,
    either,
    fault_text,
    moorage_url,
    on_signals,
    pools_checked,
    rules_of,
    server_of,
)
from moorage.cli.support.options import example, listening, metrics_option, ready_seconds
from moorage.cli.support.output import UNREACHABLE, USAGE, Failure, say
from moorage.client.run.parse import token_named

if TYPE_CHECKING:
    from moorage.integrations.kubernetes.api import Connection
    from moorage.integrations.metal3.governor import Governor

log = logging.getLogger("moorage.metal3")

MISSING = "this command needs kopf: pip install 'moorage[kubernetes]'"


@click.command(epilog=example("moorage metal3 govern --pool deploy"))
@click.option("--pool", metavar="NAME", help="Each working host has one unit of this pool.")
@click.option("--rules", type=click.Path(), metavar="FILE", help="Rules instead of one pool.")
@click.option("--url", metavar="URL", help="Moorage's address; by default MOORAGE_URL.")
@click.option("--token", metavar="TOKEN", help="Moorage's token; by default MOORAGE_TOKEN.")
@click.option("--token-file", type=click.Path(), metavar="FILE", help="File with Moorage's token.")
@click.option(
    "--kubeconfig",
    type=click.Path(),
    metavar="FILE",
    help="The cluster; by default KUBECONFIG, or that of this pod.",
)
@click.option("--namespace", metavar="NAME", help="Govern one namespace; by default all.")
@click.option(
    "--cluster-name",
    metavar="NAME",
    help="Tells this cluster from others in the same pools; the same for all its processes.",
)
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 60),
    default=2.0,
    metavar="SECONDS",
    help="Seconds between two passes; 2 by default.",
)
@click.option("--once", is_flag=True, help="Make one pass and exit.")
@metrics_option
def govern(
    namespace: str | None,
    cluster_name: str | None,
    interval: float,
    once: bool,
    metrics_listen: str | None,
    **words: Any,
) -> None:
    """Start hosts when there is room; count all other work.

    A host waits while it has our pause, baremetalhost.metal3.io/paused: moorage, which is removed
    as soon as there is room. Runs until Ctrl-C or SIGTERM.
    """
    from moorage.integrations.metal3.rules import Rules, read

    url = moorage_url(server_of(words))
    rules = rules_of(words["pool"], words["rules"], Rules.of_pool, read)
    try:
        token = token_named({name: words[name] for name in ("token", "token_file")})
    except (OSError, ValueError) as error:
        raise Failure(USAGE, fault_text(error)) from None

    async def work() -> None:
        from moorage.integrations.kubernetes.api import KubernetesApi
        from moorage.integrations.lease_api import LeaseApi
        from moorage.integrations.metal3.governor import Governor
        from moorage.integrations.metal3.requests import HostRequests
        from moorage.integrations.metrics_server import metrics_served
        from moorage.integrations.provisioning.host_leases import HostLeases

        connection = _connection(words["kubeconfig"])
        sockets = listening(metrics_listen)
        stop = asyncio.Event()
        on_signals((signal.SIGTERM, signal.SIGINT), stop.set)
        async with LeaseApi(url, token) as leases, KubernetesApi(connection) as api:
            governor = Governor(
                HostLeases(leases, cluster_name), HostRequests(api, namespace), rules
            )
            metrics = governor.metrics
            trouble = partial(metrics.trouble, ready_seconds(interval))
            async with metrics_served(metrics.registry, sockets, trouble):
                every = None if once else interval
                check = partial(pools_checked, leases, rules.pools, url)
                await _until_reached(check, metrics.failed, stop, every)
                await _passes(governor, api.url, stop, every)

    carried_out(work, "kubernetes")


def _connection(kubeconfig: str | None) -> "Connection":
    """Return how the cluster is reached. Raises Failure."""
    try:
        from moorage.integrations.kubernetes.connection import (
            VARIABLE,
            UnusableError,
            by_kubeconfig,
            in_cluster,
        )
    except ImportError:
        raise Failure(USAGE, MISSING) from None
    path = kubeconfig or os.environ.get(VARIABLE)
    try:
        return by_kubeconfig(path) if path else in_cluster()
    except UnusableError as error:
        raise Failure(USAGE, str(error)) from None


async def _until_reached(
    check: Callable[[], Awaitable[None]],
    failed: Callable[[str], None],
    stop: asyncio.Event,
    interval: float | None,
) -> None:
    """Check again and again until Moorage answers, or `stop`; without an interval once.

    A governor that ended because Moorage is away would be started again and again. Raises Failure.
    """
    warned = False
    while not stop.is_set():
        try:
            return await check()
        except Failure as failure:
            if interval is None or failure.exit_code != UNREACHABLE:
                raise
            failed(failure.message)
            if not warned:
                log.warning("nothing is started until Moorage can be reached: %s", failure.message)
            warned = True
        await either(stop, interval)


async def _passes(
    governor: "Governor", cluster: str, stop: asyncio.Event, interval: float | None
) -> None:
    """Make passes until `stop`, or one; print the ready line after the first that succeeds."""
    ready = False
    while not stop.is_set():
        succeeded = await governor.tick()
        if interval is None:
            await governor.close()
            if not succeeded:
                raise Failure(UNREACHABLE, "the pass has failed")
            return
        if succeeded and not ready:
            ready = True
            seen = governor.picture
            say(
                f"moorage: governing {cluster} ({len(seen.hosts)} hosts, {len(seen.occupied)} busy)"
            )
        await either(stop, interval)
    await governor.close()
