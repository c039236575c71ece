"""`moorage pool`: how many may run at once, and at which pace they start."""

import functools
from collections.abc import Callable, Collection
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

import click
import msgspec

from moorage.cli import completing
from moorage.cli.administering import administering, at_server
from moorage.cli.durations import (
    AUTO,
    NONE,
    DurationType,
    NoneOr,
    PacingType,
    duration_text,
    pacing_text,
)
from moorage.cli.options import json_option
from moorage.cli.output import USAGE, Failure, say, show_json, show_table
from moorage.core.admission.model import FREE, LEASED, SECOND, pacing_default
from moorage.core.counting import counted
from moorage.wire.admission import Pacing, Pool, PoolReport, PoolWanted

COLUMNS = ["pool", "limit", "occupied", "waiting", "free", "hold", "pacing", "state"]

PROPERTIES = tuple(field.name for field in fields(PoolWanted) if field.name != "generation")
DURATIONS = frozenset({"ttl", "ttl_max", "hold", "hold_max", "cooldown", "lock_delay", "proxy_ttl"})
ALWAYS_SAID = ("limit", "hold", "pacing")

_DURATION = DurationType()
_AMOUNT = click.IntRange(0)


def _label(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> Any:
    labels = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", context, parameter)
        labels[name] = value
    return labels or None


def _askers(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> Any:
    if NONE in texts:
        return NONE
    return [*texts] or None


_OPTIONS = (
    click.option("--limit", type=_AMOUNT, help="Units that may be held at once."),
    click.option("--hold", type=NoneOr(_DURATION), help="Each lease ends so long after its grant."),
    click.option("--ttl", type=_DURATION, help="A lease that is not renewed lasts so long."),
    click.option("--ttl-max", type=_DURATION, help="Longest TTL that may be asked for."),
    click.option("--cooldown", type=_DURATION, help="A freed unit rests so long."),
    click.option(
        "--lock-delay",
        type=_DURATION,
        help="How long a unit rests if its holder did not return it.",
    ),
    click.option(
        "--pacing", type=PacingType(), help="INTERVAL[xBURST][+JITTER] between grants; auto; none."
    ),
    click.option("--quota", type=NoneOr(_AMOUNT), help="Units that one owner may hold."),
    click.option("--queue-max", type=_AMOUNT, help="Tickets that may wait."),
    click.option(
        "--label", "labels", multiple=True, callback=_label, help="NAME=VALUE; may be repeated."
    ),
    click.option(
        "--expire", type=click.Choice(["free", "keep"]), help="What an unheard lease does."
    ),
    click.option(
        "--asker",
        "askers",
        multiple=True,
        callback=_askers,
        help="An owner, PROJECT/* or role:ROLE that may ask; may be repeated; none: everybody.",
    ),
    click.option(
        "--priority-max", type=NoneOr(click.INT), help="Highest priority that may be asked for."
    ),
    click.option("--hold-max", type=NoneOr(_DURATION), help="Longest hold that may be asked for."),
    click.option(
        "--queue-max-per-owner", type=NoneOr(_AMOUNT), help="Tickets of one owner that may wait."
    ),
    click.option(
        "--on-retry",
        type=click.Choice(["keep", "requeue"]),
        help="Whether who retries keeps its place.",
    ),
    click.option(
        "--proxy-ttl",
        type=NoneOr(_DURATION),
        help="How long after its names were returned a lease of the lease proxy ends.",
    ),
)


def spec_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option per property of a pool; it gets those given as `given`."""

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
    """Make pools, look at them, change and pause them."""


@group.command()
@administering
@click.argument("name")
@spec_options
@json_option
def create(name: str, given: dict[str, Any], as_json: bool) -> None:
    """Make the pool NAME and print its limit and its pacing; 4 if there is one already.

    Pools with named slots are made by Boskos' configuration file.
    """
    if "limit" not in given:
        raise Failure(USAGE, "a pool needs a limit: name how many units, for example --limit 50")
    with at_server() as admission:
        made = admission.pool_put(name, PoolWanted(**given, generation=0))
    _show_one(made, as_json, f"made {made.name}: {summary(made, given)}")


@group.command()
@administering
@click.argument("name", shell_complete=completing.pools)
@spec_options
@json_option
def change(name: str, given: dict[str, Any], as_json: bool) -> None:
    """Change what the options say of the pool NAME; all else stays as it is.

    A pacing that follows from limit and hold goes on to follow from them; so a pool without a
    pacing gets one with its first hold, unless --pacing says otherwise.
    """
    if not given:
        raise Failure(USAGE, "name what to change, for example --limit 30")
    with at_server() as admission:
        changed = admission.pool_put(name, changed_of(admission.pool(name), given))
    _show_one(changed, as_json, f"changed {changed.name}: {summary(changed, given)}")


@group.command("list")
@administering
@json_option
def list_(as_json: bool) -> None:
    """Print all pools."""
    with at_server() as admission:
        pools = list(admission.pools())
    if as_json:
        show_json(msgspec.to_builtins(pools))
        return
    rows = [
        [
            pool.name,
            str(units_of(pool)),
            str(pool.occupied),
            str(pool.waiting),
            str(pool.free),
            duration_text(pool.hold),
            pacing_text(pool.pacing),
            state_of(pool),
        ]
        for pool in pools
    ]
    show_table(COLUMNS, rows)


@group.command()
@administering
@click.argument("name", shell_complete=completing.pools)
@json_option
def show(name: str, as_json: bool) -> None:
    """Print all there is to know of the pool NAME."""
    with at_server() as admission:
        pool = admission.pool(name)
    if as_json:
        show_json(msgspec.to_builtins(pool))
        return
    shown = asdict(pool) | {name: duration_text(getattr(pool, name)) for name in sorted(DURATIONS)}
    first = pool.first
    shown |= {
        "pacing": pacing_text(pool.pacing),
        "first": None if first is None else f"{first.owner} {first.key}",
        "why": None if first is None or first.waiting is None else first.waiting.reason,
    }
    show_table(["property", "value"], [[name, plain_text(value)] for name, value in shown.items()])


@group.command()
@administering
@click.argument("name", shell_complete=completing.pools)
@json_option
def report(name: str, as_json: bool) -> None:
    """Print how long the last day's leases of NAME waited and held, and how their starts went."""
    with at_server() as admission:
        told = admission.pool_report(name)
    if as_json:
        show_json(msgspec.to_builtins(told))
    else:
        _show_report(told)


@group.command()
@administering
@click.argument("name", shell_complete=completing.pools)
@json_option
def pause(name: str, as_json: bool) -> None:
    """Grant nothing more of the pool NAME; leases go on."""
    with at_server() as admission:
        pool = admission.pool_pause(name)
    _show_one(pool, as_json, f"paused {name}")


@group.command()
@administering
@click.argument("name", shell_complete=completing.pools)
@json_option
def resume(name: str, as_json: bool) -> None:
    """Grant of the pool NAME again."""
    with at_server() as admission:
        pool = admission.pool_resume(name)
    _show_one(pool, as_json, f"resumed {name}")


@group.command()
@administering
@click.argument("name", shell_complete=completing.pools)
@json_option
def delete(name: str, as_json: bool) -> None:
    """Remove the pool NAME, which nobody holds units of or waits for."""
    with at_server() as admission:
        admission.pool_delete(name)
    if as_json:
        show_json({"name": name, "deleted": True})
    else:
        say(f"deleted {name}")


def wanted_of(pool: Pool) -> dict[str, Any]:
    """Return what was wanted of a pool that is as it is; its pacing may have followed from it."""
    names = {field.name for field in fields(PoolWanted)}
    wanted = {name: getattr(pool, name) for name in names}
    if _follows(pool):
        wanted["pacing"] = AUTO
    return wanted


def _follows(pool: Pool) -> bool:
    """Does its pacing follow from limit and hold? None follows from no hold; else it was said."""
    if pool.pacing is None:
        return pool.hold is None
    return pool.pacing == paced(AUTO, units_of(pool), pool.hold)


def paced(pacing: Pacing | str | None, limit: int | None, hold: float | None) -> Pacing | None:
    """Return the pacing that a wanted one becomes."""
    if not isinstance(pacing, str):
        return pacing
    default = pacing_default(limit, None if hold is None else round(hold * SECOND))
    if default is None:
        return None
    return Pacing(interval=default.interval / SECOND, burst=default.burst)


def changed_of(pool: Pool, given: dict[str, Any]) -> PoolWanted:
    """Return what is wanted of a pool that is to be changed, if nobody else changes it first."""
    return PoolWanted(**{**wanted_of(pool), **given})


def summary(pool: Pool, given: Collection[str] = ()) -> str:
    """Say a pool's limit, hold and pacing in one line, and what else was given."""
    limit = "as many units as it has slots" if pool.limit is None else f"limit {pool.limit}"
    parts = [limit]
    if pool.hold is not None:
        parts.append(f"hold {duration_text(pool.hold)}")
    if pool.pacing is None:
        parts.append("not paced")
    else:
        interval, burst = duration_text(pool.pacing.interval), pool.pacing.burst
        parts.append(f"paced: interval {interval}, burst {burst}")
    for name in sorted(given, key=PROPERTIES.index):
        if name not in ALWAYS_SAID:
            parts.append(f"{name.replace('_', ' ')} {property_text(name, getattr(pool, name))}")
    return ", ".join(parts)


def property_text(name: str, value: Any) -> str:
    """Return a property of a pool as its option takes it."""
    if name == "pacing":
        return pacing_text(value)
    if value is None:
        return NONE
    return duration_text(value) if name in DURATIONS else plain_text(value)


def units_of(pool: Pool) -> int:
    """Return the units of a pool: its limit, or how many slots it has."""
    return sum(pool.slots.values()) if pool.limit is None else pool.limit


def state_of(pool: Pool) -> str:
    """Say in a word how a pool is, and how many hold units of it without a sign of life."""
    word = "over" if pool.over else "full" if pool.free <= 0 else "open"
    if pool.free <= 0 and pool.limit is None and pool.occupied < units_of(pool):
        others = {state: n for state, n in pool.slots.items() if n and state not in (FREE, LEASED)}
        word = ", ".join(f"{n} {state}" for state, n in sorted(others.items())) or word
    if pool.paused:
        word = "paused"
    return f"{word}, {pool.unheard} unheard" if pool.unheard else word


def plain_text(value: Any) -> str:
    """Return a value for a table."""
    if value is None or value in ({}, [], ""):
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return " ".join(f"{key}={plain_text(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return ",".join(plain_text(one) for one in value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _show_one(pool: Pool, as_json: bool, line: str) -> None:
    if as_json:
        show_json(msgspec.to_builtins(pool))
    else:
        say(line)


def _show_report(told: PoolReport) -> None:
    rows = [
        [what, *(duration_text(round(one, 3)) for one in seconds)]
        for what, seconds in (("waited", told.waited), ("held", told.held))
        if seconds is not None
    ]
    say(f"{counted(told.leases, 'lease')} ended within the last 24 hours")
    if rows:
        show_table(["", "median", "90 %", "99 %"], rows)
    if told.causes:
        show_table(["cause", "leases"], [[cause, str(n)] for cause, n in told.causes.items()])
    if told.outcomes:
        columns = [field.name for field in fields(told.outcomes[0])]
        rows = [[plain_text(getattr(line, name)) for name in columns] for line in told.outcomes]
        show_table([name.replace("_", " ") for name in columns], rows)
