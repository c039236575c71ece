"""`moorage reshape`: change the shape of trees of providers by plans, and undo it."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import click

from moorage.cli.commands import reshape_plans
from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server, server_now
from moorage.cli.support.documents import read
from moorage.cli.support.options import WholeNumber, example, json_option, wide_option
from moorage.cli.support.output import CONFLICT, FAILED, USAGE, Failure, say, show_json, show_table
from moorage.cli.support.tables import NOTHING, Column, Row, show_rows
from moorage.cli.support.terminal import can_ask
from moorage.cli.support.views.cells import age_cell, id_cells, timed
from moorage.cli.support.views.reshape_text import (
    names_of,
    show_consumers,
    show_differences,
    show_notes,
    show_trees,
    show_violations,
)
from moorage.client.decoding import decode_exactly
from moorage.client.reshapes import PlanRefusedError, Reshapes
from moorage.core.counting import counted
from moorage.wire.dataclass import members
from moorage.wire.reshapes import (
    Reshape,
    ReshapeEntry,
    ReshapeGenerations,
    ReshapePlan,
    ReshapePlanned,
    ReshapeWanted,
    UndoWanted,
)

COLUMNS = (
    Column("id"),
    Column("done", right=True),
    Column("who", dropped=1, least=8),
    Column("providers", dropped=3, right=True),
    Column("consumers", dropped=2, right=True),
    Column("undoes", dropped=5, least=8),
    Column("undone by", dropped=4, least=8),
    Column("reason", least=16, last=True),
)

_ID = "5b0c6f3e-1d2a-4c53-9a77-2f1e0d9c8b7a"
"""The reshape of the examples."""


@click.group("reshape")
def group() -> None:
    """Change the shape of trees of providers while consumers use them; undo it.

    A plan is a file in JSON or YAML. All of it happens in one transaction, or nothing. Some
    commands write plans for frequent cases; they change nothing.
    """


for _maker in reshape_plans.COMMANDS:
    group.add_command(_maker)


_FILE = click.argument("path", metavar="FILE", type=click.Path())
_RESHAPE = click.argument("text", metavar="ID", shell_complete=completion.reshapes)
_DIGEST = click.option(
    "--digest", help="Only if the effects have this digest, which a plan has printed."
)
_YES = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
_REASON = click.option("--reason", default="", help="Reason, shown in the audit log and to others.")


@group.command("plan", epilog=example("moorage reshape plan split-gpus.json"))
@administering
@_FILE
@wide_option
@json_option
def plan_(path: str, wide: bool, as_json: bool) -> None:
    """Print what the plan in FILE would do, and all that speaks against it; change nothing.

    FILE - is standard input. The exit code is 4 if the plan cannot be carried out.
    """
    plan = _read(path)
    with at_server(Reshapes) as reshapes:
        planned = reshapes.plan(plan)
    if as_json:
        show_json(members(planned))
    else:
        _show_planned(planned, wide=wide)
    _check(planned, None)


@group.command(
    epilog=example(
        "moorage reshape commit split-gpus.json",
        "moorage reshape commit split-gpus.json --digest $DIGEST --yes",
    )
)
@administering
@_FILE
@_DIGEST
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse it if anything that it has read is changed meanwhile, even if nothing differs.",
)
@_REASON
@_YES
@wide_option
@json_option
def commit(
    path: str,
    digest: str | None,
    strict: bool,
    reason: str,
    yes: bool,
    wide: bool,
    as_json: bool,
) -> None:
    """Carry out the plan in FILE, after showing what it does.

    It is done only if it still does what was shown. Claims of others that change nothing of that do
    not stand in the way. The exit code is 4 if it is refused.
    """
    _check_askable(yes=yes, as_json=as_json)
    plan = _read(path)
    with at_server(Reshapes) as reshapes:
        planned = reshapes.plan(plan)
        _consider(planned, digest, "Carry out this plan?", yes=yes, wide=wide, as_json=as_json)
        wanted = ReshapeWanted(
            plan=_strict(plan, planned) if strict else plan,
            digest=planned.digest,
            effects=planned.effects,
            reason=reason,
        )
        done = _done(lambda: reshapes.carry_out(wanted), wide=wide, as_json=as_json)
    _show_done(done, as_json=as_json)


@group.command(epilog=example(f"moorage reshape show {_ID}"))
@administering
@_RESHAPE
@wide_option
@json_option
def show(text: str, wide: bool, as_json: bool) -> None:
    """Print the reshape ID: who did it, and what it has changed."""
    with at_server(Reshapes) as reshapes:
        one = reshapes.show(ids.reshape_id(reshapes, text))
    if as_json:
        show_json(members(one))
        return
    now = server_now()
    facts = {
        "id": one.id,
        "done": timed(age_cell(one.at, now), " ago"),
        "who": f"{one.who} ({one.role})",
        "reason": one.reason or NOTHING,
        "digest": one.digest,
        "undoes": one.undoes or NOTHING,
        "undone by": one.undone_by or NOTHING,
    }
    show_table(["property", "value"], [[name, value] for name, value in facts.items()])
    show_trees(one.summary, wide=wide)
    show_consumers(one.summary, wide=wide)


@group.command("list", epilog=example("moorage reshape list"))
@administering
@click.option(
    "--limit", type=WholeNumber(1, 1_000_000), help="Print at most this many; all by default."
)
@wide_option
@json_option
def list_(limit: int | None, wide: bool, as_json: bool) -> None:
    """Print reshapes, newest first. They are kept as long as the audit log."""
    with at_server(Reshapes) as reshapes:
        found = [*islice(reshapes.all(), limit)]
    if as_json:
        show_json(found)
        return
    now = server_now()
    related = [two for one in found for two in (one.id, one.undoes, one.undone_by)]
    shown = id_cells(one for one in related if one is not None)
    rows: list[Row] = [
        [
            shown[one.id],
            age_cell(one.at, now),
            one.who,
            str(one.providers),
            str(one.consumers),
            NOTHING if one.undoes is None else shown[one.undoes],
            NOTHING if one.undone_by is None else shown[one.undone_by],
            one.reason or NOTHING,
        ]
        for one in found
    ]
    show_rows(COLUMNS, rows, wide=wide)


@group.command(epilog=example(f"moorage reshape undo {_ID}"))
@administering
@_RESHAPE
@click.option(
    "--leave-out",
    multiple=True,
    metavar="CONSUMER",
    help="Do not create this consumer again, because its owner is gone; may be repeated.",
)
@_DIGEST
@_REASON
@_YES
@wide_option
@json_option
def undo(
    text: str,
    leave_out: tuple[str, ...],
    digest: str | None,
    reason: str,
    yes: bool,
    wide: bool,
    as_json: bool,
) -> None:
    """Undo the reshape ID, after showing what that does.

    It is refused only where something that the reshape wrote has been changed since, or where the
    lease of a consumer that it removed has ended. It is a reshape itself, which can be undone, too.
    """
    _check_askable(yes=yes, as_json=as_json)
    with at_server(Reshapes) as reshapes:
        undone = ids.reshape_id(reshapes, text)
        planned = reshapes.undo_plan(undone, leave_out)
        _consider(planned, digest, "Undo this reshape?", yes=yes, wide=wide, as_json=as_json)
        wanted = UndoWanted(
            digest=planned.digest,
            effects=planned.effects,
            reason=reason,
            leave_out=[*leave_out],
        )
        done = _done(lambda: reshapes.undo(undone, wanted), wide=wide, as_json=as_json)
    _show_done(done, as_json=as_json)


def _read(path: str) -> ReshapePlan:
    """Return the plan in a file; `-` is standard input. Raises Failure: 2."""
    return read(path, "the plan", lambda value: decode_exactly(ReshapePlan, value))


def _check_askable(*, yes: bool, as_json: bool) -> None:
    """Raise Failure: 2, nobody can be asked."""
    if not (yes or can_ask(as_json=as_json)):
        raise Failure(
            USAGE,
            "cannot ask for confirmation without a terminal or with --json: add --yes, or look at"
            " `moorage reshape plan`",
        )


def _consider(
    planned: ReshapePlanned,
    digest: str | None,
    question: str,
    *,
    yes: bool,
    wide: bool,
    as_json: bool,
) -> None:
    """Show a plan, and ask. Raises Failure: it cannot be carried out, or shall not."""
    if not as_json:
        _show_planned(planned, wide=wide)
    _check(planned, digest)
    if not yes and not click.confirm(question):
        raise Failure(FAILED, "nothing was changed")


def _check(planned: ReshapePlanned, digest: str | None) -> None:
    """Raise Failure: 4, a plan has violations, or other effects than those that are meant."""
    if planned.violations:
        count = counted(len(planned.violations), "violation")
        message = f"the plan cannot be carried out: {count}; the first: "
        raise Failure(CONFLICT, message + planned.violations[0].message, "reshape_refused")
    if digest not in (None, planned.digest):
        message = f"the plan has other effects now: their digest is {planned.digest}"
        raise Failure(CONFLICT, message, "reshape_changed")


def _strict(plan: ReshapePlan, planned: ReshapePlanned) -> ReshapePlan:
    """Return a plan that expects the generations that were read."""
    read_, own = planned.generations, plan.expect
    expect = ReshapeGenerations(
        providers={**read_.providers, **own.providers},
        consumers={**read_.consumers, **own.consumers},
    )
    return replace(plan, expect=expect)


def _done(work: Callable[[], Reshape], *, wide: bool, as_json: bool) -> Reshape:
    """Return what was committed. Raises PlanRefusedError, after showing why."""
    try:
        return work()
    except PlanRefusedError as refusal:
        if not as_json:
            _show_refused(refusal, wide=wide)
        raise


def _show_refused(refusal: PlanRefusedError, *, wide: bool) -> None:
    plan = refusal.plan
    if plan.violations:
        show_violations(plan.violations, plan.summary, wide=wide)
        return
    if refusal.differences is not None:
        gone, new = refusal.differences.gone, refusal.differences.new
        show_differences(gone, new, names_of(plan.summary), wide=wide)
    say(f"digest now: {plan.digest}")


def _show_planned(planned: ReshapePlanned, *, wide: bool) -> None:
    show_trees(planned.summary, wide=wide)
    show_consumers(planned.summary, wide=wide)
    show_notes(planned.notes, wide=wide)
    if planned.violations:
        show_violations(planned.violations, planned.summary, wide=wide)
        return
    say(f"{counted(len(planned.effects), 'effect')}, digest {planned.digest}")


def _show_done(done: Reshape, *, as_json: bool) -> None:
    if as_json:
        show_json(members(done))
        return
    say(f"reshape {done.id} is done: {_count(done)}")
    say(f"undo it with: moorage reshape undo {done.id}")


def _count(one: ReshapeEntry) -> str:
    providers, consumers = counted(one.providers, "provider"), counted(one.consumers, "consumer")
    return f"{providers} and {consumers} changed"
