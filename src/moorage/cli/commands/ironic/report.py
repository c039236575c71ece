"""`moorage ironic report`: tells the ledger what Ironic's nodes offer."""

import asyncio
import platform
import signal
import sys
from typing import TYPE_CHECKING

import click

from moorage.cli.support.ironic import Addresses, addressing, carried_out, either, on_signals
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import CONFLICT, FAILED, UNREACHABLE, Failure, say, show_json
from moorage.cli.support.report_view import Shown, view
from moorage.client.transport import RefusedError, UnreachableError

if TYPE_CHECKING:
    from moorage.integrations.ironic.nodes import NodeReader
    from moorage.integrations.ironic.report.difference import Difference
    from moorage.integrations.ironic.report.membership import GroupMember
    from moorage.integrations.ironic.report.reporter import Reporter
    from moorage.integrations.ironic.report.sending import Mode
    from moorage.integrations.report_api import ReportApi


@click.command(
    epilog=example(
        "moorage ironic report --ironic http://127.0.0.1:6385 --group ironic --member reporter-1"
        " --token-file reporter.token",
        "moorage ironic report --ironic http://127.0.0.1:6385 --group ironic --dry-run",
    )
)
@addressing
@click.option("--group", required=True, help="Group of reporters that share the nodes.")
@click.option("--member", help="Name of this one in the group; by default the host name.")
@click.option(
    "--mode",
    type=click.Choice(["owner", "beside_nova"]),
    default="owner",
    help="beside_nova: write reserved and total only, as nova writes the rest; owner by default.",
)
@click.option(
    "--ttl",
    type=click.FloatRange(5, 3_600),
    default=15.0,
    metavar="SECONDS",
    help="The others take over after this silence; 15 by default.",
)
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 300),
    default=5.0,
    metavar="SECONDS",
    help="Seconds between two passes; 5 by default.",
)
@click.option("--conductors", metavar="GROUP", help="Ironic's live conductors are observed there.")
@click.option("--many-gone", is_flag=True, help="Report nodes as gone, however many they are.")
@click.option("--once", is_flag=True, help="Report all nodes once, leave the group, and exit.")
@click.option("--dry-run", is_flag=True, help="Print what would change; needs the role reader.")
@json_option
def report(
    addresses: Addresses,
    group: str,
    member: str | None,
    mode: "Mode",
    ttl: float,
    interval: float,
    conductors: str | None,
    many_gone: bool,
    once: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Tell the ledger what Ironic's nodes offer, as one of a group that shares them.

    Exit codes: 0 stopped by a signal, or all is reported; 1 not all is (--once); 4 another reporter
    has joined as the same member, or the group was deleted.
    """

    async def work() -> None:
        from moorage.integrations.ironic.nodes import NodeReader
        from moorage.integrations.ironic.report.membership import FencedError, GroupMember
        from moorage.integrations.ironic.report.reporter import Reporter
        from moorage.integrations.report_api import ReportApi

        async with (
            ReportApi(addresses.url, addresses.token) as api,
            NodeReader(addresses.ironic, addresses.ironic_headers, addresses.trusted) as nodes,
        ):
            if dry_run:
                _print(await _compared(api, nodes, group, mode), as_json=as_json)
                return
            place = GroupMember(group, member or platform.node(), ttl)
            reporter = Reporter(api, nodes, place, mode, conductors=conductors, many_gone=many_gone)
            try:
                await (_once(reporter) if once else _passes(reporter, addresses, place, interval))
            except FencedError as error:
                raise Failure(CONFLICT, str(error), "fenced") from None

    carried_out(work)


async def _once(reporter: "Reporter") -> None:
    work = asyncio.create_task(reporter.once())

    def stop() -> None:
        work.cancel()  # it leaves the group then

    on_signals((signal.SIGTERM, signal.SIGINT), stop)
    try:
        reported = await work
    except asyncio.CancelledError:
        raise Failure(FAILED, "stopped before all nodes were reported") from None
    say(str(reporter.progress.total))
    if not reported:
        raise Failure(FAILED, "not all nodes are reported")


async def _passes(
    reporter: "Reporter", addresses: Addresses, place: "GroupMember", interval: float
) -> None:
    """Make passes until a signal; the first line says that all nodes are reported.

    Raises FencedError.
    """
    stop = asyncio.Event()
    on_signals((signal.SIGTERM, signal.SIGINT), stop.set)
    signs = asyncio.create_task(reporter.stay())
    signs.add_done_callback(lambda _: stop.set())
    try:
        with view(live=sys.stderr.isatty()) as shown:
            await _until(stop, reporter, f"{place.group}/{place.member}", interval, shown)
        if signs.done():
            await signs
    finally:
        signs.cancel()
        await asyncio.gather(signs, return_exceptions=True)
        await reporter.close()


async def _until(
    stop: asyncio.Event, reporter: "Reporter", name: str, interval: float, shown: Shown
) -> None:
    ready = False
    while not stop.is_set():
        await reporter.tick_unless(stop)
        shown(name, reporter.progress)
        if reporter.progress.full and not ready:
            ready = True
            say(f"moorage: reporting {reporter.progress.own} nodes as {name}")
        await either(stop, interval)


async def _compared(
    api: "ReportApi", nodes: "NodeReader", group: str, mode: "Mode"
) -> "list[Difference]":
    """Compare all nodes with the ledger. Raises Failure."""
    from moorage.integrations.ironic.nodes import IronicError
    from moorage.integrations.ironic.report.difference import compared
    from moorage.integrations.ironic.report.mapping import FIELDS

    try:
        held = {one.uuid: one async for one in api.providers()}
        found = await nodes.all(FIELDS)
    except (IronicError, UnreachableError) as error:
        raise Failure(UNREACHABLE, str(error)) from None
    except RefusedError as error:
        raise Failure(FAILED, str(error), error.code) from None
    return compared(found, held, group, mode)


def _print(found: "list[Difference]", *, as_json: bool) -> None:
    if as_json:
        show_json([vars(one) for one in found])
        return
    for one in found:
        say(one.uuid, one.outcome, *one.fields)
