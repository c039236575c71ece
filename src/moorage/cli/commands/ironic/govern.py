"""`moorage ironic govern`: starts what nodes wish for, and counts all other work."""

import asyncio
import signal
from functools import partial
from typing import TYPE_CHECKING

import click

from moorage.cli.support.ironic import Target, opened, targeting
from moorage.cli.support.options import (
    SecondsRange,
    example,
    listening,
    metrics_option,
    ready_seconds,
)
from moorage.cli.support.output import UNREACHABLE, Failure, say
from moorage.cli.support.provisioning import carried_out, either, on_signals, pools_checked

if TYPE_CHECKING:
    from moorage.integrations.ironic.govern.governor import Governor


@click.command(
    epilog=example(
        "moorage ironic govern --ironic http://127.0.0.1:6385 --pool deploy"
        " --token-file governor.token"
    )
)
@targeting
@click.option(
    "--interval",
    type=SecondsRange(0.1, 60),
    default=2.0,
    metavar="SECONDS",
    help="Seconds between two passes; 2 by default.",
)
@click.option("--count-holds", is_flag=True, help="Nodes in a hold state need units, too.")
@click.option(
    "--project-wishes",
    is_flag=True,
    help="Carry out the wishes of nodes with an owner or a lessee, too.",
)
@click.option("--once", is_flag=True, help="Make one pass and exit.")
@metrics_option
def govern(
    target: Target,
    interval: float,
    count_holds: bool,
    project_wishes: bool,
    once: bool,
    metrics_listen: str | None,
) -> None:
    """Start nodes that wish for it; count all other work.

    A wish is a request for a provision state in a node's extra.moorage_want. It is carried out as
    soon as there is room. Runs until Ctrl-C or SIGTERM.
    """

    async def work() -> None:
        from moorage.integrations.ironic.govern.governor import Governor
        from moorage.integrations.metrics_server import metrics_served
        from moorage.integrations.provisioning.host_leases import HostLeases

        sockets = listening(metrics_listen)
        stop = asyncio.Event()
        on_signals((signal.SIGTERM, signal.SIGINT), stop.set)
        async with opened(target) as (api, nodes):
            await pools_checked(api, target.rules.pools, target.url)
            governor = Governor(
                HostLeases(api, target.ironic_name),
                nodes,
                target.rules,
                hold_counts=count_holds,
                project_wishes=project_wishes,
            )
            trouble = partial(governor.metrics.trouble, ready_seconds(interval))
            async with metrics_served(governor.metrics.registry, sockets, trouble):
                await _passes(governor, target, stop, None if once else interval)

    carried_out(work)


async def _passes(
    governor: "Governor", target: Target, stop: asyncio.Event, interval: float | None
) -> None:
    """Make passes until `stop`, or one; print the ready line after the first that succeeds."""
    succeeded = await governor.tick()
    if interval is None:
        await governor.close()
        if not succeeded:
            raise Failure(UNREACHABLE, "the pass has failed")
        return
    ready = False
    while not stop.is_set():
        if succeeded and not ready:
            ready = True
            seen = governor.metrics.picture
            say(
                f"moorage: governing {target.ironic}"
                f" ({len(seen.nodes)} nodes, {len(seen.busy)} busy)"
            )
        await either(stop, interval)
        if not stop.is_set():
            succeeded = await governor.tick()
    await governor.close()
