"""`moorage apply`: creates and changes pools as described in a file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
import msgspec

from moorage.cli.support.command import administering, at_server
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import FAILED, USAGE, Failure, say, show_json
from moorage.cli.support.pool_files import (
    Difference,
    differences,
    read_all,
    template_differences,
)
from moorage.cli.support.terminal import can_ask
from moorage.cli.support.views.pool_text import changed_of
from moorage.client.admission import Admission
from moorage.client.transport import RefusedError
from moorage.core.admission import templates
from moorage.core.admission.facts import Facts
from moorage.core.admission.pools import new_pool, put
from moorage.core.admission.templates import TemplateWish
from moorage.core.clock import Instant
from moorage.core.errors import Error
from moorage.core.service_time import Moment
from moorage.service.admission.pool_specs import spec_of
from moorage.service.values import microseconds
from moorage.wire.admission import Pool, PoolWanted
from moorage.wire.pools.templates import PoolTemplateWanted

ORIGIN = Instant(0)
"""A placeholder for rules that do not use the time."""


@click.command(
    epilog=example("moorage apply -f pools.toml --dry-run", "moorage apply -f pools.toml --yes")
)
@administering
@click.option(
    "-f",
    "--file",
    "path",
    type=click.Path(),
    required=True,
    metavar="FILE",
    help="File with pools: TOML, or YAML if its name ends in .yaml or .yml.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="Only print what would be changed.")
@json_option
def apply(path: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Compare pools with FILE and apply the differences.

    Pools and templates that are not in FILE are left alone, and repeating the command is harmless.
    If one in FILE is not valid, nothing is changed. The exit code is 4 if one was changed by
    someone else at the same time.
    """
    asks = not (yes or dry_run)
    alone = not can_ask(as_json=as_json)
    wanted = read_all(path)
    with at_server(Admission) as admission:
        there = list(admission.pools())
        _check(path, wanted.pools, {pool.name: pool for pool in there})
        _check_templates(path, wanted.templates)
        # An older server has no templates: a file without them does not ask for them.
        made = admission.pool_templates() if wanted.templates else []
        found = differences(wanted.pools, there)
        found += template_differences(wanted.templates, made)
        due = [one for one in found if one.action != "keep"]
        if not as_json:
            for one in found:
                for line in one.lines():
                    say(line)
            say(_count(found))
        applied = bool(due) and not dry_run
        if applied and asks and alone:
            raise Failure(
                USAGE, "cannot ask for confirmation without a terminal: use --yes or --dry-run"
            )
        if applied and asks and not click.confirm("Apply these changes?"):
            raise Failure(FAILED, "nothing was changed")
        for one in due if applied else ():
            if isinstance(one.wanted, PoolTemplateWanted):
                with _named("template", one.name):
                    admission.pool_template_put(one.name, one.wanted)
            else:
                with _named("pool", one.name):
                    admission.pool_put(one.name, one.wanted)
            if not as_json:
                done = "created" if one.action == "create" else "changed"
                say(f"{done} {one.name}")
    if as_json:
        pools = [_as_json(one) for one in found if one.name in wanted.pools]
        others = [_as_json(one) for one in found if one.name in wanted.templates]
        show_json({"applied": applied, "pools": pools, "templates": others})


def _check(path: str, wanted: Mapping[str, PoolWanted], there: Mapping[str, Pool]) -> None:
    """Check a whole file by the server's rules, without applying it. Raises Failure: 2."""
    for name, one in wanted.items():
        facts = Facts()
        try:
            if (pool := there.get(name)) is not None:
                facts.pools[name] = new_pool(name, spec_of(changed_of(pool, {})), ORIGIN)
            put(facts, Moment(ORIGIN, ORIGIN), ORIGIN, name, spec_of(one))
        except Error as error:
            raise Failure(USAGE, f"{path}: pool {name}: {error.message}") from None


def _check_templates(path: str, wanted: Mapping[str, PoolTemplateWanted]) -> None:
    """Check the templates of a file likewise. Raises Failure: 2."""
    for name, one in wanted.items():
        try:
            wish = TemplateWish(spec_of(one.pool), microseconds("idle", one.idle), one.pools_max)
            templates.put(Facts(), ORIGIN, name, wish)
        except Error as error:
            raise Failure(USAGE, f"{path}: template {name}: {error.message}") from None


@contextmanager
def _named(noun: str, name: str) -> Iterator[None]:
    """Add what was refused to a refusal; what is before it in the file has been applied."""
    try:
        yield
    except RefusedError as refusal:
        said = f"{noun} {name}: {refusal}"
        raise RefusedError(refusal.status, refusal.code, said, refusal.request_id) from None


def _count(found: list[Difference]) -> str:
    actions = [one.action for one in found]
    new, changed = actions.count("create"), actions.count("change")
    return f"{new} to create, {changed} to change, {actions.count('keep')} unchanged"


def _as_json(one: Difference) -> dict[str, Any]:
    changes = {
        name: msgspec.to_builtins({"before": before, "after": after})
        for name, (before, after) in one.changes.items()
    }
    return {"name": one.name, "action": one.action, "changes": changes}
