"""`moorage simulate`: shows the effect of a limit and a pacing before they are applied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import click

from moorage.cli.support import completion
from moorage.cli.support.command import administering, at_server
from moorage.cli.support.durations import (
    AUTO,
    NONE,
    DurationType,
    FairShareType,
    fair_share_text,
    pacing_parse,
    pacing_text,
)
from moorage.cli.support.jobs import crowd, history, trace
from moorage.cli.support.options import WholeNumber, example, json_option, wide_option
from moorage.cli.support.output import FAILED, USAGE, Failure, show_json
from moorage.cli.support.pool_files import read
from moorage.cli.support.tables import Column, show_rows
from moorage.cli.support.views.pool_text import changed_of, paced
from moorage.cli.support.views.simulate_chart import Series, draw
from moorage.client.admission import Admission
from moorage.client.run.durations import spoken
from moorage.core.admission.forecast.simulate import Job, JobTimes, Summary, simulate_pool, summary
from moorage.core.clock import SECOND
from moorage.core.errors import Error
from moorage.service.admission.pool_specs import spec_of
from moorage.wire.admission import Pacing, PoolWanted

COLUMNS = (
    Column("limit", right=True),
    Column("pacing"),
    Column("jobs", dropped=5, right=True),
    Column("starts/min", dropped=2, right=True),
    Column("running", dropped=4, right=True),
    Column("waiting", dropped=3, right=True),
    Column("last start", dropped=1, right=True),
    Column("waited p50", right=True),
    Column("p90", right=True),
    Column("p99", right=True),
)
OWNER, SHARE = Column("owner"), Column("fair share")
ACTUAL = "as it was"
JOBS_MAX = 1_000_000
"""This many jobs take about a gigabyte of memory, and minutes."""


@dataclass(frozen=True)
class Scene:
    """One limit and one pacing, with the simulated jobs."""

    limit: int | None
    """None: no limit, or the replayed history."""
    pacing: str
    stays: Sequence[JobTimes]
    jobs: Sequence[Job] = ()
    share: str = NONE
    """The fair share."""
    owner: str | None = None
    """The one whose jobs these are; None: those of all owners."""

    @property
    def label(self) -> str:
        """Its name in a chart."""
        if self.pacing == ACTUAL:
            return ACTUAL
        shared = "" if self.share == NONE else f", fair share {self.share}"
        return f"limit {NONE if self.limit is None else self.limit}, pacing {self.pacing}{shared}"

    def by_owner(self) -> list["Scene"]:
        """Return the jobs of each owner, by name."""
        owners = sorted({job.owner for job in self.jobs})
        return [
            replace(self, owner=owner, stays=[s for job, s in self._pairs() if job.owner == owner])
            for owner in owners
        ]

    def _pairs(self) -> Iterator[tuple[Job, JobTimes]]:
        return zip(self.jobs, self.stays, strict=True)


class ListOf(click.ParamType[Any]):
    """An option with several values, separated by commas."""

    def __init__(self, name: str, read_one: Any) -> None:
        self.name = name
        self._read_one = read_one

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the list of parsed values."""
        try:
            return [self._read_one(text.strip()) for text in value.split(",")]
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _limit(text: str) -> int | None:
    if text == NONE:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{text!r} is not a limit (for example 50, or none)")
    return int(text)


@click.command(
    epilog=example(
        "moorage simulate --jobs 100 --hold 20m --limit 10,50,none --pacing auto,none",
        "moorage simulate --replay install/azure --limit 30,50 --svg azure.svg",
    )
)
@administering
@click.option("--jobs", type=WholeNumber(1, JOBS_MAX), help="Number of jobs to simulate.")
@click.option(
    "--spread",
    type=DurationType(),
    default=0.0,
    help="The jobs arrive at random within this time; by default all at once.",
)
@click.option("--trace", "trace_file", type=click.Path(), metavar="CSV", help="File with the jobs.")
@click.option(
    "--replay",
    metavar="POOL",
    shell_complete=completion.pools,
    help="Replay the jobs that this pool of the server had in the last 24 hours.",
)
@click.option(
    "--pool",
    "pool_file",
    type=click.Path(),
    metavar="FILE",
    help="File that describes the pool, as for `moorage apply`.",
)
@click.option("--name", help="Name of the pool in that file; required if it has several.")
@click.option("--hold", type=DurationType(), help="Each lease ends this long after its grant.")
@click.option(
    "--limit",
    "limits",
    type=ListOf("limits", _limit),
    help="Comma-separated limits to try; 'none' means no limit.",
)
@click.option(
    "--pacing",
    "pacings",
    type=ListOf("pacings", pacing_parse),
    help="Comma-separated pacings to try: INTERVAL[xBURST][+JITTER], auto or none.",
)
@click.option(
    "--fair-share",
    "shares",
    type=FairShareType(),
    multiple=True,
    help="Fair share to try: owner or project, see `moorage pool create`, or none; repeatable.",
)
@click.option("--by-owner", is_flag=True, help="Print a row for the jobs of each owner.")
@click.option(
    "--seed", type=WholeNumber(0), default=0, help="Seed of the random jitter and spread."
)
@click.option(
    "--svg",
    "chart_file",
    type=click.Path(),
    metavar="FILE",
    help="Also draw a chart into this file.",
)
@wide_option
@json_option
def simulate(
    jobs: int | None,
    spread: float,
    trace_file: str | None,
    replay: str | None,
    seed: int,
    chart_file: str | None,
    by_owner: bool,
    wide: bool,
    as_json: bool,
    **pool_options: Any,
) -> None:
    """Simulate limits and pacings with the decisions of the server, without waiting.

    Each limit is tried with each pacing and each fair share on the same jobs. The jobs come from
    exactly one of --jobs, --trace and --replay.
    """
    if sum(source is not None for source in (jobs, trace_file, replay)) != 1:
        raise Failure(USAGE, "pass exactly one of --jobs, --trace and --replay")
    scenes = []
    if replay is not None:
        name, wanted, comers, stays = _replayed(replay)
        scenes.append(Scene(None, ACTUAL, stays, comers))
    else:
        name, wanted = _described(pool_options["pool_file"], pool_options["name"])
        comers = crowd(jobs, spread, seed) if jobs is not None else trace(trace_file or "")
    if pool_options["hold"] is not None:
        wanted = replace(wanted, hold=pool_options["hold"])
    if wanted.per_member is not None and not pool_options["limits"]:
        raise Failure(USAGE, f"the limit of {name} follows the members of a group: give --limit")
    limits = pool_options["limits"] or [wanted.limit]
    pacings = pool_options["pacings"] or [wanted.pacing]
    given = [None if one == NONE else one for one in pool_options["shares"]]
    for limit, pacing, share in product(limits, pacings, given or [wanted.fair_share]):
        tried = replace(_fixed(wanted, limit, pacing), fair_share=share)
        scenes.append(_scene(name, tried, comers, seed))
    if chart_file is not None:
        _write(chart_file, draw(f"Pool {name}", [Series(one.label, one.stays) for one in scenes]))
    if by_owner:
        scenes = [one for scene in scenes for one in scene.by_owner()]
    if as_json:
        show_json([_as_json(scene) for scene in scenes])
    else:
        more = tuple(
            column
            for column, shown in ((OWNER, by_owner), (SHARE, bool(given or wanted.fair_share)))
            if shown
        )
        show_rows((*more, *COLUMNS), [_row(scene, more) for scene in scenes], wide=wide)


def _described(pool_file: str | None, name: str | None) -> tuple[str, PoolWanted]:
    """Return the pool that the options describe. Raises Failure: 2."""
    if pool_file is None:
        return name or "rehearsal", PoolWanted()
    pools = read(pool_file)
    if name is None and len(pools) != 1:
        raise Failure(USAGE, f"{pool_file} has {len(pools)} pools: choose one with --name")
    if name is not None and name not in pools:
        raise Failure(USAGE, f"{pool_file} has no pool '{name}'")
    chosen = name or next(iter(pools))
    return chosen, pools[chosen]


def _replayed(pool: str) -> tuple[str, PoolWanted, list[Job], list[JobTimes]]:
    with at_server(Admission) as admission:
        there = admission.pool(pool)
        jobs, stays = history(pool, admission.leases(pool=pool, state="ended"))
    wanted = replace(changed_of(there, {}), generation=None)
    return pool, _fixed(wanted, there.units, wanted.pacing), jobs, stays


def _fixed(wanted: PoolWanted, limit: int | None, pacing: Any) -> PoolWanted:
    """Return a pool with a fixed limit."""
    return replace(wanted, limit=limit, pacing=pacing, per_member=None, member_group=None)


def _scene(name: str, wanted: PoolWanted, jobs: list[Job], seed: int) -> Scene:
    """Simulate one limit and one pacing. Raises Failure: 2."""
    unlimited = sum(job.units for job in jobs)
    limit = unlimited if wanted.limit is None else wanted.limit
    pacing = paced(wanted.pacing, wanted.limit, wanted.hold)
    try:
        stays = simulate_pool(
            name, spec_of(replace(wanted, limit=limit, pacing=pacing)), jobs, seed=seed
        )
    except (Error, ValueError) as error:
        raise Failure(USAGE, f"{error}") from None
    shown = _pacing_shown(wanted.pacing, pacing)
    return Scene(wanted.limit, shown, stays, jobs, fair_share_text(wanted.fair_share))


def _pacing_shown(wanted: Pacing | str | None, pacing: Pacing | None) -> str:
    shown = pacing_text(pacing)
    return f"{AUTO} ({shown})" if wanted == AUTO and pacing is not None else shown


def _row(scene: Scene, more: Sequence[Column]) -> list[str]:
    summed = summary(scene.stays)
    waited = ["-"] * 3 if summed.waited is None else [spoken(one / SECOND) for one in summed.waited]
    return [
        *(scene.owner or "" if column is OWNER else scene.share for column in more),
        scene.pacing if scene.pacing == ACTUAL else str(scene.limit or NONE),
        "-" if scene.pacing == ACTUAL else scene.pacing,
        f"{summed.jobs} ({summed.never} never start)" if summed.never else str(summed.jobs),
        str(summed.starts_per_minute),
        str(summed.running),
        str(summed.waiting),
        spoken(summed.last_start / SECOND),
        *waited,
    ]


def _as_json(scene: Scene) -> dict[str, Any]:
    summed: Summary = summary(scene.stays)
    return {
        "limit": scene.limit,
        "pacing": scene.pacing,
        "fair_share": scene.share,
        "owner": scene.owner,
        "jobs": summed.jobs,
        "never": summed.never,
        "starts_per_minute": summed.starts_per_minute,
        "running": summed.running,
        "waiting": summed.waiting,
        "last_start_seconds": summed.last_start / SECOND,
        "last_end_seconds": summed.last_end / SECOND,
        "waited_seconds": None
        if summed.waited is None
        else [one / SECOND for one in summed.waited],
    }


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise Failure(FAILED, f"cannot write {path}: {error.strerror}") from None
