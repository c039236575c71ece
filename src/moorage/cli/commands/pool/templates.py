"""`moorage pool template`: which pools requests make."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from moorage.cli.commands.pool.pools import spec_options
from moorage.cli.support.command import administering, at_server
from moorage.cli.support.durations import DurationType, duration_text, pacing_text
from moorage.cli.support.irreversible import Ask, irreversible
from moorage.cli.support.options import WholeNumber, example, json_option, wide_option
from moorage.cli.support.output import USAGE, Failure, say, say_or_json, show_json, show_table
from moorage.cli.support.pool_files import adaptive_of, pacing_of
from moorage.cli.support.tables import Column, Row, show_rows
from moorage.cli.support.views.adaptive_text import adaptive_text
from moorage.cli.support.views.pool_text import plain_text
from moorage.client.admission import Admission
from moorage.wire.admission import DURATIONS, PoolWanted
from moorage.wire.defaults import TEMPLATE_IDLE_SECONDS, TEMPLATE_POOLS

COLUMNS = (
    Column("template"),
    Column("limit", right=True),
    Column("pools", right=True),
    Column("at most", right=True),
    Column("idle"),
    Column("hold", dropped=1),
    Column("pacing", dropped=2),
)


def _sizes(command: Callable[..., None]) -> Callable[..., None]:
    idle = click.option(
        "--idle",
        type=DurationType(),
        default=TEMPLATE_IDLE_SECONDS,
        help="How long a pool stays that nobody uses; 1h by default.",
    )
    most = click.option(
        "--pools-max",
        type=WholeNumber(1),
        default=TEMPLATE_POOLS,
        help=f"Pools of the template at once; {TEMPLATE_POOLS} by default.",
    )
    return idle(most(command))


@click.group("template")
def group() -> None:
    """Say which pools requests make, and when these go again."""


@group.command(epilog=example("moorage pool template create 'deploy/*' --limit 1"))
@administering
@click.argument("name")
@spec_options
@_sizes
@json_option
def create(name: str, given: dict[str, Any], idle: float, pools_max: int, as_json: bool) -> None:
    """Create the template NAME, such as deploy/*; exit code 4 if it exists.

    A request for a pool whose name begins so makes the pool, with these settings.
    """
    from moorage.wire.pools.templates import PoolTemplateWanted  # deferred: most commands need none

    if given.get("limit") is None:
        raise Failure(USAGE, "a template needs a limit for its pools: set one, such as --limit 1")
    wanted = PoolTemplateWanted(
        pool=PoolWanted(**given), idle=idle, pools_max=pools_max, generation=0
    )
    with at_server(Admission) as admission:
        made = admission.pool_template_put(name, wanted)
    says = f"limit {made.pool.limit}, at most {made.pools_max} pools"
    said = f"created {made.name}: {says}, which go after {duration_text(made.idle)}"
    say_or_json(as_json, made, said)


@group.command("list", epilog=example("moorage pool template list"))
@administering
@wide_option
@json_option
def list_(wide: bool, as_json: bool) -> None:
    """Print all templates, and how many pools requests have made from each."""
    with at_server(Admission) as admission:
        templates = admission.pool_templates()
    if as_json:
        show_json(templates)
        return
    rows: list[Row] = [
        [
            one.name,
            str(one.pool.limit),
            str(one.pools),
            str(one.pools_max),
            duration_text(one.idle),
            duration_text(one.pool.hold),
            pacing_text(pacing_of(one)),
        ]
        for one in templates
    ]
    show_rows(COLUMNS, rows, wide=wide)


@group.command(epilog=example("moorage pool template show 'deploy/*'"))
@administering
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Print all properties of the template NAME."""
    with at_server(Admission) as admission:
        template = admission.pool_template(name)
    if as_json:
        show_json(template)
        return
    spec = asdict(template.pool)
    spec |= {one: duration_text(spec[one]) for one in sorted(DURATIONS & spec.keys())}
    shown = asdict(template) | {"idle": duration_text(template.idle)}
    del shown["pool"]
    shown |= spec | {
        "pacing": pacing_text(pacing_of(template)),
        "adaptive": adaptive_text(adaptive_of(template)),
    }
    show_table(["property", "value"], [[one, plain_text(value)] for one, value in shown.items()])


@group.command(epilog=example("moorage pool template delete 'deploy/*'"))
@administering
@click.argument("name")
@irreversible("pool template delete")
@json_option
def delete(name: str, sure: Ask, as_json: bool) -> None:
    """Delete the template NAME; its pools stay until they are idle."""
    sure(name)
    with at_server(Admission) as admission:
        admission.pool_template_delete(name)
    if as_json:
        show_json({"name": name, "deleted": True})
    else:
        say(f"deleted {name}")
