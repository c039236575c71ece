"""`moorage pool`: limits how many jobs run at once, and at which pace they start."""

import functools
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any, get_args

import click

from moorage.cli.commands.pool import past, slots
from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server, server_now
from moorage.cli.support.durations import (
    NONE,
    DurationType,
    FairShareType,
    NoneOr,
    PacingType,
    UntilType,
    duration_text,
    fair_share_text,
    pacing_text,
)
from moorage.cli.support.irreversible import Ask, irreversible
from moorage.cli.support.options import WholeNumber, example, json_option, label_option, wide_option
from moorage.cli.support.output import USAGE, Failure, say, say_or_json, show_json, show_table
from moorage.cli.support.pool_files import described, template_described, toml_of
from moorage.cli.support.tables import Cell, Column, Row, show_rows
from moorage.cli.support.views.adaptive_text import AdaptiveType, adaptive_text
from moorage.cli.support.views.cells import state_cell
from moorage.cli.support.views.lease_text import time_text
from moorage.cli.support.views.pool_text import (
    changed_of,
    explained,
    outlasting,
    plain_text,
    share_text,
    summary,
)
from moorage.client.admission import Admission
from moorage.wire.admission import DURATIONS, Pool, PoolWanted
from moorage.wire.enums import Expire, OnRetry, Order
from moorage.wire.labels import holder_of

COLUMNS = (
    Column("pool"),
    Column("limit", piped=True),
    Column("in use", right=True),
    Column("waiting", right=True),
    Column("free", dropped=1, right=True),
    Column("hold", dropped=2),
    Column("pacing", dropped=3),
    Column("state", least=24, last=True),
)

BEST_EFFORT = (
    "note: jobs with --best-effort start without a lease when their wait is over, unless they have"
    " --unless-paused"
)

_DURATION = DurationType()
_AMOUNT = WholeNumber(0)


def _askers(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> Any:
    if NONE in texts:
        return NONE
    return [*texts] or None


_OPTIONS = (
    click.option("--limit", type=_AMOUNT, help="Units that may be occupied at once."),
    click.option(
        "--per-member",
        type=NoneOr(_AMOUNT),
        help="Units for each member of --member-group, instead of a limit; none: a limit.",
    ),
    click.option(
        "--member-group",
        help="The group of reporters whose members count, live or observed; none: no group.",
    ),
    click.option(
        "--hold",
        type=NoneOr(_DURATION),
        help="Each lease ends this long after its grant; none: never.",
    ),
    click.option("--ttl", type=_DURATION, help="How long a lease lasts without a renewal."),
    click.option("--ttl-max", type=_DURATION, help="Longest TTL that may be requested."),
    click.option("--cooldown", type=_DURATION, help="How long a freed unit stays unavailable."),
    click.option(
        "--lock-delay",
        type=_DURATION,
        help="How long a unit stays unavailable if its holder did not return it.",
    ),
    click.option(
        "--pacing",
        type=PacingType(),
        help="Least time between grants: INTERVAL[xBURST][+JITTER], auto or none.",
    ),
    click.option(
        "--adaptive",
        type=AdaptiveType(),
        help="Let the limit follow the outcomes of starts: [advise|act:]FLOOR-CEILING[:good=P%]"
        "[:bad=P%][:throttled=N], or none.",
    ),
    click.option(
        "--quota", type=NoneOr(_AMOUNT), help="Units that one owner may have; none: no limit."
    ),
    click.option("--queue-max", type=_AMOUNT, help="Tickets that may wait."),
    label_option("NAME=VALUE; may be repeated."),
    click.option(
        "--expire",
        type=click.Choice(get_args(Expire)),
        help="What happens to the units of a lease that is not renewed in time.",
    ),
    click.option(
        "--asker",
        "askers",
        multiple=True,
        callback=_askers,
        help="Owner, PROJECT/* or role:ROLE that may ask; may be repeated; none: anyone.",
    ),
    click.option(
        "--priority-max",
        type=NoneOr(click.INT),
        help="Highest priority that may be requested; none: no limit.",
    ),
    click.option(
        "--hold-max",
        type=NoneOr(_DURATION),
        help="Longest hold that may be requested; none: no limit.",
    ),
    click.option(
        "--queue-max-per-owner",
        type=NoneOr(_AMOUNT),
        help="Tickets of one owner that may wait; none: a tenth of queue-max, at least 10.",
    ),
    click.option(
        "--fair-share",
        type=FairShareType(),
        help="Who shares the pool: owner, project or label:NAME, and @HALF_LIFE and ,NAME=WEIGHT"
        " if needed; none: the line is in order of arrival.",
    ),
    click.option(
        "--cohort",
        type=NoneOr(click.STRING),
        help="Pools with the same cohort lend each other units; none: it is in no cohort.",
    ),
    click.option(
        "--lending", type=NoneOr(_AMOUNT), help="Units that others may borrow; none: all unused."
    ),
    click.option("--borrowing", type=_AMOUNT, help="Units it may have beyond its limit."),
    click.option(
        "--on-retry",
        type=click.Choice(get_args(OnRetry)),
        help="Whether a retry keeps its place or goes to the end of the line.",
    ),
    click.option(
        "--order",
        type=click.Choice(get_args(Order)),
        help="Which request goes first; with newest, others may wait for ever.",
    ),
    click.option(
        "--proxy-ttl",
        type=NoneOr(_DURATION),
        help="How long after its grant a lease of the lease proxy ends; none: never. Default: 8h.",
    ),
    click.option(
        "--book-ahead",
        type=NoneOr(_DURATION),
        help="How far ahead others than operators may book; none: only operators book.",
    ),
    click.option(
        "--book-hours",
        type=NoneOr(_AMOUNT),
        help="Unit-hours that one of them may have booked; goes with --book-ahead.",
    ),
)


def spec_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add one option per property of a pool to a command; those used are passed as `given`."""

    @functools.wraps(command)
    def wrapped(*args: Any, **options: Any) -> None:
        names = {field.name for field in fields(PoolWanted)} & options.keys()
        taken = {name: options.pop(name) for name in names}
        given = {
            name: None if value == NONE else value
            for name, value in taken.items()
            if value is not None
        }
        command(*args, given=given, **options)

    for option in reversed(_OPTIONS):
        option(wrapped)
    return wrapped


@click.group("pool")
def group() -> None:
    """Create, show, change and pause pools."""


@group.command(epilog=example("moorage pool create install/azure --limit 50 --hold 20m"))
@administering
@click.argument("name")
@spec_options
@click.option(
    "--native-slots", "slotted", is_flag=True, help="The pool has named slots, which are its limit."
)
@json_option
def create(name: str, given: dict[str, Any], slotted: bool, as_json: bool) -> None:
    """Create the pool NAME and print its limit and its pacing; exit code 4 if it exists.

    With --native-slots it has named slots instead of a limit: `moorage pool slot add` makes them.
    """
    if not slotted and not {"limit", "per_member"} & given.keys():
        raise Failure(USAGE, "a pool needs a limit: set one, for example --limit 50")
    with at_server(Admission) as admission:
        wanted = PoolWanted(**given, native_slots=slotted, generation=0)
        made = admission.pool_put(name, wanted)
    say_or_json(as_json, made, f"created {made.name}: {summary(made, given)}")


@group.command(epilog=example("moorage pool change install/azure --limit 30 --quota 5"))
@administering
@click.argument("name", shell_complete=completion.pools)
@spec_options
@json_option
def change(name: str, given: dict[str, Any], as_json: bool) -> None:
    """Change properties of the pool NAME; all others stay as they are.

    A pacing that follows from limit and hold keeps following them. So a pool without a pacing gets
    one with its first hold, unless --pacing sets another one.
    """
    if not given:
        raise Failure(USAGE, "nothing to change: pass an option, for example --limit 30")
    with at_server(Admission) as admission:
        changed = ids.pool_of(
            admission,
            name,
            lambda one: admission.pool_put(one, changed_of(admission.pool(one), given)),
        )
    say_or_json(as_json, changed, f"changed {changed.name}: {summary(changed, given)}")


@group.command("list", epilog=example("moorage pool list", "moorage pool list --paused"))
@administering
@click.option("--paused", is_flag=True, help="Only paused pools.")
@wide_option
@json_option
def list_(paused: bool, wide: bool, as_json: bool) -> None:
    """Print all pools."""
    with at_server(Admission) as admission:
        pools = [pool for pool in admission.pools() if pool.paused or not paused]
    if as_json:
        show_json(pools)
        return
    now = server_now()
    rows: list[Row] = [
        [
            pool.name,
            str(pool.units),
            Cell(f"{pool.occupied}/{pool.units}", str(pool.occupied)),
            str(pool.waiting),
            str(pool.free),
            duration_text(pool.hold),
            pacing_text(pool.pacing),
            state_cell(explained(pool, now)),
        ]
        for pool in pools
    ]
    show_rows(COLUMNS, rows, wide=wide)


@group.command(epilog=example("moorage pool show install/azure"))
@administering
@click.argument("name", shell_complete=completion.pools)
@json_option
def show(name: str, as_json: bool) -> None:
    """Print all properties of the pool NAME."""
    with at_server(Admission) as admission:
        pool = ids.pool_of(admission, name, admission.pool, reads=True)
    if as_json:
        show_json(pool)
        return
    shown = asdict(pool) | {name: duration_text(getattr(pool, name)) for name in sorted(DURATIONS)}
    first, overstay = pool.first, pool.overstay
    shown |= {
        "pacing": pacing_text(pool.pacing),
        **_adaptive(pool),
        "fair_share": fair_share_text(pool.fair_share),
        "shares": [share_text(share) for share in pool.shares],
        "first": None if first is None else f"{holder_of(first.owner, first.labels)} {first.key}",
        "reason": None if first is None or first.waiting is None else first.waiting.reason,
        "overstay": overstay and f"{outlasting(overstay, server_now())}: lease {overstay.lease}",
    }
    show_table(["property", "value"], [[name, plain_text(value)] for name, value in shown.items()])


def _adaptive(pool: Pool) -> dict[str, Any]:
    """Return the rows about an adaptive limit: its settings, its last decision, its test."""
    test = pool.adaptive_test
    shown = {"adaptive": adaptive_text(pool.adaptive)}
    if test is None:
        return {**shown, "adaptive_test": None}
    frozen = test.frozen_until
    now = test.text + (f"; nothing counts until {time_text(frozen)}" if frozen else "")
    last = None if test.last is None else f"{time_text(test.last.at)}: {test.last.text}"
    return {**shown, "adaptive_test": now, "adaptive_last": last, "configured": test.configured}


@group.command(
    epilog=example(
        "moorage pool pause install/azure",
        'moorage pool pause install/azure --reason "rack 7 has no power" --until 2h',
    )
)
@administering
@click.argument("name", shell_complete=completion.pools)
@click.option("--reason", default="", help="Reason, shown with the pool and to waiting clients.")
@click.option(
    "--until",
    type=UntilType(),
    help="When the pause ends by itself: a duration such as 2h, or a time; without it, when the"
    " pool is resumed.",
)
@json_option
def pause(name: str, reason: str, until: float | None, as_json: bool) -> None:
    """Stop granting from the pool NAME; its leases continue.

    Jobs of `moorage run --best-effort` start without a lease when their wait is over, unless they
    have --unless-paused.
    """
    with at_server(Admission) as admission:
        pool = ids.pool_of(admission, name, lambda one: admission.pool_pause(one, reason, until))
    end = "" if pool.paused_until is None else f" until {time_text(pool.paused_until)}"
    say_or_json(as_json, pool, f"paused {pool.name}{end}")
    if not as_json:
        say(BEST_EFFORT)


@group.command(epilog=example("moorage pool resume install/azure"))
@administering
@click.argument("name", shell_complete=completion.pools)
@json_option
def resume(name: str, as_json: bool) -> None:
    """Resume granting from the pool NAME."""
    with at_server(Admission) as admission:
        pool = ids.pool_of(admission, name, admission.pool_resume)
    say_or_json(as_json, pool, f"resumed {name}")


@group.command(epilog=example("moorage pool export > pools.toml", "moorage pool export install/a"))
@administering
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.pools)
@json_option
def export(names: tuple[str, ...], as_json: bool) -> None:
    """Print the file with these pools, or with all, that `moorage apply` reads.

    Of all, it has the templates in place of the pools that requests have made from them.

    With --json it is YAML, too: `moorage apply` reads it from a file whose name ends in .yaml.
    """
    with at_server(Admission) as admission:
        read = (ids.pool_of(admission, name, admission.pool, reads=True) for name in names)
        pools = list(read) if names else [one for one in admission.pools() if one.template is None]
        templates = [] if names else admission.pool_templates()
    if as_json:
        shown = {"pools": {pool.name: described(pool) for pool in pools}}
        if templates:
            shown["templates"] = {one.name: template_described(one) for one in templates}
        show_json(shown)
    else:
        for line in toml_of(pools, templates):
            say(line)


@group.command(epilog=example("moorage pool delete install/azure"))
@administering
@click.argument("name", shell_complete=completion.pools)
@irreversible("pool delete")
@json_option
def delete(name: str, sure: Ask, as_json: bool) -> None:
    """Delete the pool NAME, which must have no leases and no tickets."""
    sure(name)
    with at_server(Admission) as admission:
        ids.pool_of(admission, name, admission.pool_delete)
    say_or_json(as_json, {"name": name, "deleted": True}, f"deleted {name}")


group.add_command(past.history)
group.add_command(past.report)
group.add_command(slots.list_)
group.add_command(slots.group)
