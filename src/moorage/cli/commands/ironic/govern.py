"""`moorage ironic govern`: starts what nodes wish for, and counts all other work."""

from functools import partial
from typing import TYPE_CHECKING

import click

from moorage.cli.support.ironic import Target, opened, targeting
from moorage.cli.support.options import (
    example,
    listening,
    metrics_option,
)
from moorage.cli.support.output import say
from moorage.cli.support.provisioning import (
    carried_out,
    interval_option,
    one_pass,
    pools_checked,
    stop_event,
    supervised,
    until_reached,
)

if TYPE_CHECKING:
    from moorage.integrations.ironic.governor import Governor


@click.command(
    epilog=example(
        "moorage ironic govern --ironic http://127.0.0.1:6385 --pool deploy"
        " --token-file governor.token"
    )
)
@targeting
@interval_option("")
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
    """Start nodes that have a wish; count all other work.

    A wish is a request for a provision state in a node's extra.moorage_want. It is carried out as
    soon as there is room. Runs until Ctrl-C or SIGTERM.
    """

    async def work() -> None:
        from moorage.integrations.ironic.governor import Governor
        from moorage.integrations.metrics_server import metrics_served, ready_seconds
        from moorage.integrations.provisioning.host_leases import HostLeases
        from moorage.integrations.provisioning.passes import passes

        sockets = listening(metrics_listen)
        stop = stop_event()
        async with opened(target) as (api, nodes):
            governor = Governor(
                HostLeases(api, target.ironic_name),
                nodes,
                target.rules,
                hold_counts=count_holds,
                project_wishes=project_wishes,
            )
            trouble = partial(governor.metrics.trouble, ready_seconds(interval))

            async def prepared() -> bool:
                await pools_checked(api, target.rules.pools, target.url)
                return True

            doing = partial(_doing, governor, target)
            async with (
                metrics_served(governor.metrics.registry, sockets, trouble),
                supervised(stop, trouble, doing),
            ):
                if once:
                    await prepared()
                    await one_pass(governor)
                elif await until_reached(prepared, governor.metrics.failed, stop, interval):
                    await passes(governor, lambda: say(f"moorage: {doing()}"), stop, interval)

    carried_out(work)


def _doing(governor: "Governor", target: Target) -> str:
    """Return what it governs: the line about the first pass that has succeeded."""
    seen = governor.metrics.picture
    return f"governing {target.ironic} ({len(seen.nodes)} nodes, {len(seen.busy)} busy)"
