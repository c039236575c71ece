"""`moorage ironic report`: tells the ledger what Ironic's nodes offer."""

import asyncio
import platform
import signal
import sys
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

import click

from moorage.cli.support.ironic import Addresses, addressing
from moorage.cli.support.options import SecondsRange, example, json_option
from moorage.cli.support.output import CONFLICT, FAILED, UNREACHABLE, Failure, say, show_json
from moorage.cli.support.provisioning import carried_out, on_signals, stop_event, supervised
from moorage.cli.support.views.report_view import Shown, view
from moorage.client.transport import RefusedError, UnreachableError
from moorage.core.counting import are, counted
from moorage.integrations.clock import first_of

if TYPE_CHECKING:
    from moorage.integrations.ironic.nodes import NodeReader
    from moorage.integrations.ironic.report.difference import Difference
    from moorage.integrations.ironic.report.dry_run import Foretold
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
@click.option("--member", help="Name of this reporter in the group; by default the host name.")
@click.option(
    "--mode",
    type=click.Choice(["owner", "beside_nova"]),
    default="owner",
    help="beside_nova: write reserved and total only, as nova writes the rest; owner by default.",
)
@click.option(
    "--ttl",
    type=SecondsRange(5, 3_600),
    default=15.0,
    metavar="SECONDS",
    help="Seconds of silence after which other members take over the nodes; 15 by default.",
)
@click.option(
    "--interval",
    type=SecondsRange(0.1, 300),
    default=5.0,
    metavar="SECONDS",
    help="Seconds between two passes; 5 by default.",
)
@click.option(
    "--conductors",
    metavar="GROUP",
    help="Group that also gets the names of Ironic's live conductors; for pools with per_member.",
)
@click.option(
    "--many-gone",
    is_flag=True,
    help="Report nodes as gone even if more than 10 and more than a tenth are.",
)
@click.option("--once", is_flag=True, help="Report all nodes once, leave the group, and exit.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what would change, and change nothing; the token needs the role reader.",
)
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
    """Report Ironic's nodes to the ledger, as one of a group of reporters.

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
                found = await _foretold(api, nodes, group, mode, many_gone)
                _print(found.differences, as_json=as_json)
                _warn_of_gone(found.too_many_gone)
                _warn_of_unclassed(found.unclassed)
                return
            place = GroupMember(group, member or platform.node(), ttl)
            reporter = Reporter(api, nodes, place, mode, conductors=conductors, many_gone=many_gone)
            try:
                await (_once(reporter) if once else _passes(reporter, addresses, place, interval))
            except FencedError as error:
                hint = "If another reporter has the same name, give each reporter its own --member."
                raise Failure(CONFLICT, f"{error} {hint}", "fenced") from None

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
    _warn_of_unclassed(reporter.progress.unclassed)
    if not reported:
        raise Failure(FAILED, "not all nodes were reported")


async def _passes(
    reporter: "Reporter", addresses: Addresses, place: "GroupMember", interval: float
) -> None:
    """Make passes until a signal; the first line says that all nodes are reported.

    Raises FencedError.
    """
    stop = stop_event()
    signs = asyncio.create_task(reporter.stay())
    signs.add_done_callback(lambda _: stop.set())
    name = f"{place.group}/{place.member}"
    try:
        async with supervised(stop, partial(_trouble, reporter), partial(_doing, reporter, name)):
            with view(live=sys.stderr.isatty()) as shown:
                await _until(stop, reporter, name, interval, shown)
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
        if reporter.progress.full and not ready:
            ready = True
            shown.say(f"moorage: {_doing(reporter, name)}")
        shown(name, reporter.progress)
        await first_of(stop, seconds=interval)


def _trouble(reporter: "Reporter") -> str | None:
    """Return why not all nodes are reported; None: they are."""
    progress = reporter.progress
    if progress.trouble or progress.full_trouble:
        return progress.trouble or progress.full_trouble
    return None if progress.full else "reading all nodes"


def _doing(reporter: "Reporter", name: str) -> str:
    reported = reporter.progress.own - reporter.progress.unclassed
    return f"reporting {counted(reported, 'node')} as {name}"


async def _foretold(
    api: "ReportApi", nodes: "NodeReader", group: str, mode: "Mode", many_gone: bool
) -> "Foretold":
    """Compare all nodes with the ledger. Raises Failure."""
    from moorage.integrations.ironic.nodes import IronicError
    from moorage.integrations.ironic.report.dry_run import foretold

    try:
        return await foretold(api, nodes, group, mode, many_gone=many_gone)
    except (IronicError, UnreachableError) as error:
        raise Failure(UNREACHABLE, str(error)) from None
    except RefusedError as error:
        forbidden = error.status == HTTPStatus.FORBIDDEN
        hint = " --dry-run needs a token with the role reader, see --token-file."
        raise Failure(FAILED, f"{error}{hint if forbidden else ''}", error.code) from None


def _warn_of_gone(count: int) -> None:
    if count:
        gone = f"more than {count} nodes are gone"
        say(f"moorage: {gone}: none is reported as gone without --many-gone", err=True)


def _warn_of_unclassed(count: int) -> None:
    if count:
        nodes = f"{counted(count, 'node')} without resource class {are(count)} not reported"
        say(f"moorage: {nodes}; see openstack baremetal node set --resource-class", err=True)


def _print(found: "list[Difference]", *, as_json: bool) -> None:
    if as_json:
        show_json([vars(one) for one in found])
        return
    for one in found:
        say(one.uuid, one.outcome, *one.fields)
