"""`moorage ironic rollout`: a wave over listed nodes, a few at once."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moorage.cli.support.durations import DurationType
from moorage.cli.support.ironic import Target, opened, targeting
from moorage.cli.support.options import WholeNumber, example, json_option
from moorage.cli.support.output import FAILED, UNREACHABLE, USAGE, Failure, say, show_json
from moorage.cli.support.provisioning import carried_out, interval_option, on_signals, pools_checked
from moorage.cli.support.views.rollout_view import view

if TYPE_CHECKING:
    from moorage.integrations.ironic.rollout import Rollout, RolloutReport

STOPPED_EARLY = 3
"""Exit code: nodes of the wave were not started."""

TARGETS = ("active", "rebuild", "deleted", "provide", "manage", "inspect", "clean", "service")


@click.command(
    epilog=example(
        "moorage ironic rollout --nodes rack-7.txt --ironic http://127.0.0.1:6385 --pool deploy"
        " --limit 20 --stop-after-failures 5%"
    )
)
@targeting
@click.option(
    "--nodes",
    "listed",
    type=click.Path(),
    required=True,
    metavar="FILE",
    help="Names or UUIDs, one on each line; # begins a comment; -: standard input.",
)
@click.option(
    "--limit",
    type=WholeNumber(min=1),
    default=20,
    metavar="N",
    help="Most nodes of this wave that are busy at once; 20 by default.",
)
@click.option(
    "--stop-after-failures",
    "failures",
    default="5%",
    metavar="SHARE",
    help="Start no more nodes once more than this share or number has failed: 5% or 3; 5% by"
    " default.",
)
@click.option(
    "--target",
    "verb",
    type=click.Choice(TARGETS),
    default="active",
    help="Target state of the nodes; active by default.",
)
@click.option("--name", help="Name of the wave; by default derived from its nodes and its target.")
@interval_option("")
@click.option("--count-holds", is_flag=True, help="Nodes in a hold state need units, too.")
@click.option(
    "--every",
    type=DurationType(),
    default="30s",
    help="How often to print the progress if there is no terminal; 30s by default.",
)
@json_option
def rollout(
    target: Target,
    listed: str,
    limit: int,
    failures: str,
    verb: str,
    name: str | None,
    interval: float,
    count_holds: bool,
    every: float,
    as_json: bool,
) -> None:
    """Deploy the listed nodes, a few at once.

    The same command continues a wave that was killed. Exit codes: 0 all are done, 1 some have
    failed, 3 stopped before all were started.
    """
    idents = list(_idents(_text(listed)))
    if not idents:
        raise Failure(USAGE, "the list of nodes is empty")
    asked = _Asked(
        target=target,
        idents=idents,
        limit=limit,
        failures=failures_of(failures, len(set(idents))),
        verb=verb,
        name=name,
        interval=interval,
        count_holds=count_holds,
        every=every,
    )
    report: RolloutReport = carried_out(lambda: _reported(asked))
    if as_json:
        show_json(report.to_json())
    else:
        _print(report)
    click.get_current_context().exit(exit_code(report))


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What the command line asks for."""

    target: Target
    idents: list[str]
    limit: int
    failures: int
    verb: str
    name: str | None
    interval: float
    count_holds: bool
    every: float


async def _reported(asked: _Asked) -> "RolloutReport":
    """Carry out a wave. Raises Failure."""
    from moorage.client.transport import RefusedError, UnreachableError
    from moorage.integrations.ironic.nodes import IronicError
    from moorage.integrations.ironic.rollout import Limits, Rollout, UnknownNodesError
    from moorage.integrations.provisioning.host_leases import HostLeases

    async with opened(asked.target) as (api, nodes):
        await pools_checked(api, asked.target.rules.pools, asked.target.url)
        limits = Limits(asked.limit, asked.failures)
        wave = Rollout(
            HostLeases(api, asked.target.ironic_name),
            nodes,
            asked.target.rules,
            asked.verb,
            limits,
            hold_counts=asked.count_holds,
        )
        try:
            known = await wave.prepare(asked.idents, asked.name)
            say(
                f"moorage: {known}: {len(set(asked.idents))} nodes, at most {asked.limit} at once",
                err=True,
            )
            await _followed(wave, known, asked)
            return await wave.report()
        except UnknownNodesError as error:
            raise Failure(USAGE, str(error)) from None
        except (IronicError, UnreachableError) as error:
            raise Failure(UNREACHABLE, str(error)) from None
        except RefusedError as error:
            raise Failure(FAILED, str(error), error.code) from None


async def _followed(wave: "Rollout", known: str, asked: _Asked) -> None:
    """Run a wave to its end; the first signal stops new starts, the second one leaves it."""
    leave, awake = asyncio.Event(), asyncio.Event()

    def interrupted() -> None:
        if not wave.stop():
            leave.set()
        awake.set()

    async def pause() -> None:
        awake.clear()
        try:
            async with asyncio.timeout(asked.interval):
                await awake.wait()
        except TimeoutError:
            return

    on_signals((signal.SIGINT, signal.SIGTERM), interrupted)
    with view(known, asked.every, live=sys.stderr.isatty()) as shown:
        await wave.run(shown, pause, leave)


def failures_of(text: str, nodes: int) -> int:
    """Return how many nodes may fail: `5%` of all, rounded down, or a number. Raises Failure."""
    percent = text.endswith("%")
    try:
        value = _not_negative(text.removesuffix("%"))
    except ValueError:
        raise Failure(
            USAGE, f"{text!r} is not a share or number of failures: write 5% or 3"
        ) from None
    return int(nodes * value / 100) if percent else int(value)


def _not_negative(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def exit_code(report: "RolloutReport") -> int:
    """Return the exit code of a wave."""
    if report.never_started or report.working:
        return STOPPED_EARLY
    return FAILED if report.failed else 0


def _text(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(USAGE, f"cannot read {file}: {error}") from None


def _idents(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if ident := line.partition("#")[0].strip():
            yield ident


def _print(report: "RolloutReport") -> None:
    from moorage.client.run.durations import spoken

    for name, why in report.failed.items():
        say(name, "failed", why)
    for name in report.working:
        say(name, "working", "not waited for")
    for name in report.never_started:
        say(name, "never started", report.stopped)
    times = [
        f"{what} {spoken(one.median)}, 9 of 10 within {spoken(one.p90)}"
        for what, one in (("waited", report.waiting_seconds), ("worked", report.working_seconds))
        if one.median is not None and one.p90 is not None
    ]
    numbers = [f"{len(report.done)} {report.target}", f"{len(report.failed)} failed"]
    if report.never_started:
        numbers.append(f"{len(report.never_started)} never started")
    say(f"{report.wave}: {', '.join(numbers)}" + "".join(f"; {one}" for one in times))
