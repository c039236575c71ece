"""`moorage simulate`: shows the effect of a limit and a pacing before they are applied."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from moorage.cli.support.jobs import capacity, crowd, history, trace
from moorage.cli.support.options import WholeNumber, example, json_option, wide_option
from moorage.cli.support.output import FAILED, USAGE, Failure, show_json
from moorage.cli.support.pool_files import read
from moorage.cli.support.tables import Column, show_rows
from moorage.cli.support.views.adaptive_text import adaptive_parse, adaptive_text
from moorage.cli.support.views.pool_text import changed_of, paced
from moorage.cli.support.views.simulate_chart import Series, draw
from moorage.client.admission import Admission
from moorage.client.run.durations import spoken
from moorage.core.admission.forecast.cloud import Cloud
from moorage.core.admission.forecast.simulate import Job, JobTimes, Summary, rehearse, summary
from moorage.core.admission.forecast.statistics import Steps
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
OUTCOMES = (
    Column("adaptive"),
    Column("ok", right=True),
    Column("failed", right=True),
    Column("throttled", right=True),
    Column("last limit", right=True),
)
"""Columns of simulations in which jobs have outcomes."""

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
    adaptive: str = NONE
    limits: Steps = field(default_factory=list)
    """The limit over time."""
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
        adaptive = "" if self.adaptive == NONE else f", adaptive {self.adaptive}"
        shared = "" if self.share == NONE else f", fair share {self.share}"
        limit = NONE if self.limit is None else self.limit
        return f"limit {limit}, pacing {self.pacing}{adaptive}{shared}"

    def by_owner(self) -> list["Scene"]:
        """Return the jobs of each owner, by name."""
        owners = sorted({job.owner for job in self.jobs})
        return [
            replace(self, owner=owner, stays=[s for job, s in self._pairs() if job.owner == owner])
            for owner in owners
        ]

    def _pairs(self) -> Iterator[tuple[Job, JobTimes]]:
        return zip(self.jobs, self.stays, strict=True)


@dataclass(frozen=True)
class Setting:
    """What all scenes of a simulation share."""

    name: str
    jobs: list[Job]
    cloud: Cloud | None
    seed: int


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
        "moorage simulate --jobs 400 --hold 20m --limit 30,none --cloud 50 --adaptive none,10-100",
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
    "--adaptive",
    "adaptives",
    type=ListOf("adaptive limits", adaptive_parse),
    help="Comma-separated adaptive limits to try, as of `moorage pool create`; they act.",
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
    "--cloud",
    type=ListOf("capacities", str),
    help="Comma-separated capacities of the system behind the pool, UNITS[@TIME]: what exceeds"
    " them is throttled.",
)
@click.option(
    "--failures",
    type=click.FloatRange(0, 100),
    default=1.0,
    help="Percentage of the jobs that fail at any load, with --cloud.",
)
@click.option("--seed", type=WholeNumber(0), default=0, help="Seed of all that is random.")
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

    Each limit is tried with each pacing, each adaptive limit and each fair share, on the same jobs.
    The jobs come from exactly one of --jobs, --trace and --replay. With --cloud, jobs that fail are
    tried again; without it, replayed jobs report what they have reported.
    """
    if sum(source is not None for source in (jobs, trace_file, replay)) != 1:
        raise Failure(USAGE, "pass exactly one of --jobs, --trace and --replay")
    scenes = []
    if replay is not None:
        name, wanted, comers, stays = _replayed(replay)
        scenes.append(Scene(None, ACTUAL, stays, jobs=comers))
    else:
        name, wanted = _described(pool_options["pool_file"], pool_options["name"])
        comers = crowd(jobs, spread, seed) if jobs is not None else trace(trace_file or "")
    if pool_options["hold"] is not None:
        wanted = replace(wanted, hold=pool_options["hold"])
    if wanted.per_member is not None and not pool_options["limits"]:
        raise Failure(USAGE, f"the limit of {name} follows the members of a group: give --limit")
    limits = pool_options["limits"] or [wanted.limit]
    pacings = pool_options["pacings"] or [wanted.pacing]
    adaptives = pool_options["adaptives"] or [None]
    given = [None if one == NONE else one for one in pool_options["shares"]]
    setting = Setting(name, comers, _cloud(pool_options, seed), seed)
    for limit, pacing, adaptive, share in product(
        limits, pacings, adaptives, given or [wanted.fair_share]
    ):
        if limit is None and adaptive is not None:
            continue  # nothing can adapt
        acting = None if adaptive is None else replace(adaptive, mode="act")
        tried = replace(_fixed(wanted, limit, pacing), adaptive=acting, fair_share=share)
        scenes.append(_scene(setting, tried))
    if chart_file is not None:
        _write(chart_file, draw(f"Pool {name}", [_series(one) for one in scenes]))
    if by_owner:
        scenes = [one for scene in scenes for one in scene.by_owner()]
    tested = setting.cloud is not None or adaptives != [None]
    shared = bool(given or wanted.fair_share)
    more = tuple(column for column, shown in ((OWNER, by_owner), (SHARE, shared)) if shown)
    if as_json:
        show_json([_as_json(scene) for scene in scenes])
    elif tested:
        rows = [_row(scene, more) + _outcomes(scene) for scene in scenes]
        show_rows((*more, *COLUMNS, *OUTCOMES), rows, wide=wide)
    else:
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
    return replace(
        wanted,
        limit=limit,
        pacing=pacing,
        per_member=None,
        member_group=None,
        native_slots=False,
        adaptive=None,
    )


def _cloud(options: Mapping[str, Any], seed: int) -> Cloud | None:
    """Return the system behind the pool; None: none. Raises Failure: 2."""
    if options["cloud"] is None:
        return None
    try:
        units = capacity(",".join(options["cloud"]))
    except ValueError as error:
        raise Failure(USAGE, f"--cloud: {error}") from None
    return Cloud(units, options["failures"] / 100, seed)


def _series(scene: Scene) -> Series:
    limits = [] if scene.adaptive == NONE else scene.limits
    return Series(scene.label, scene.stays, limits)


def _scene(setting: Setting, wanted: PoolWanted) -> Scene:
    """Simulate one limit and one pacing. Raises Failure: 2."""
    unlimited = sum(job.units for job in setting.jobs)
    limit = unlimited if wanted.limit is None else wanted.limit
    pacing = paced(wanted.pacing, wanted.limit, wanted.hold)
    try:
        spec = spec_of(replace(wanted, limit=limit, pacing=pacing))
        found = rehearse(setting.name, spec, setting.jobs, setting.cloud, seed=setting.seed)
    except (Error, ValueError) as error:
        raise Failure(USAGE, f"{error}") from None
    shown = _pacing_shown(wanted.pacing, pacing)
    return Scene(
        wanted.limit,
        shown,
        found.stays,
        adaptive_text(wanted.adaptive),
        found.limits,
        setting.jobs,
        fair_share_text(wanted.fair_share),
    )


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


def _outcomes(scene: Scene) -> list[str]:
    summed = summary(scene.stays)
    last = str(scene.limits[-1][1]) if scene.limits and scene.limit is not None else "-"
    counts = [str(summed.ok), str(summed.failed), str(summed.throttled)]
    return [scene.adaptive, *counts, last]


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
        "adaptive": None if scene.adaptive == NONE else scene.adaptive,
        "ok": summed.ok,
        "failed": summed.failed,
        "throttled": summed.throttled,
        "limits": [{"seconds": at / SECOND, "limit": limit} for at, limit in scene.limits],
    }


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise Failure(FAILED, f"cannot write {path}: {error.strerror}") from None
