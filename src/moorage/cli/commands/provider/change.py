"""`moorage provider set`: changes names, figures, traits and aggregates; it can be undone."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server, server
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import CONFLICT, USAGE, Failure, say, show_json
from moorage.client.ledger import Ledger

if TYPE_CHECKING:
    from moorage.client.plans.changing import Change
    from moorage.wire.reshapes import ReshapePlanned

TRIES = 5
"""How often a plan is made again because somebody else was faster."""


def _figures(name: str, kind: Callable[[str], float], meaning: str) -> Callable[[Any], Any]:
    """Return an option whose values CLASS=NUMBER become a dict."""

    def parse(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> Any:
        found = {}
        for text in texts:
            resource_class, equals, number = text.partition("=")
            try:
                found[resource_class] = kind(number)
            except ValueError:
                equals = ""
            if not (resource_class and equals):
                message = f"{text!r} is not CLASS=NUMBER, such as VCPU=4"
                raise click.BadParameter(message, context, parameter)
        return found

    return click.option(
        f"--{name}", multiple=True, metavar="CLASS=NUMBER", callback=parse, help=meaning
    )


def _names(name: str, meaning: str) -> Callable[[Any], Any]:
    return click.option(f"--{name}", multiple=True, help=f"{meaning}; may be repeated.")


@click.command(
    "set",
    epilog=example(
        "moorage provider set r05-n04 --ratio VCPU=4 --reserved MEMORY_MB=8192",
        'moorage provider set r05-n04 --add-trait CUSTOM_QUARANTINE --reason "ECC errors"',
    ),
)
@administering
@click.argument("text", metavar="PROVIDER", shell_complete=completion.providers)
@click.option("--name", help="The new name.")
@_figures("ratio", float, "Allocation ratio of a resource class; may be repeated.")
@_figures("reserved", int, "Reserved units of a resource class; may be repeated.")
@_figures("total", int, "Total units of a resource class; may be repeated.")
@_names("add-trait", "A trait to add")
@_names("remove-trait", "A trait to remove")
@_names("add-aggregate", "The UUID of an aggregate to join")
@_names("remove-aggregate", "The UUID of an aggregate to leave")
@click.option("--dry-run", is_flag=True, help="Print what would change; change nothing.")
@click.option("--reason", default="", help="Reason, shown in the audit log and to others.")
@json_option
def set_(text: str, name: str | None, dry_run: bool, reason: str, as_json: bool, **to: Any) -> None:
    """Change some values of PROVIDER; all others stay as they are.

    It is a reshape, which `moorage reshape undo` undoes. If somebody else changes the same values
    meanwhile, it is tried again with what is there then. Nova, reporters and agents may write their
    own values again.
    """
    from moorage.client.plans.changing import Change, changes_of  # deferred: for this command only

    change = Change(
        name=name,
        total=to["total"],
        reserved=to["reserved"],
        ratio=to["ratio"],
        traits_added=to["add_trait"],
        traits_removed=to["remove_trait"],
        aggregates_added=[one.lower() for one in to["add_aggregate"]],
        aggregates_removed=[one.lower() for one in to["remove_aggregate"]],
    )
    if not change:
        raise Failure(USAGE, "nothing to change: pass an option, for example --ratio VCPU=4")
    with at_server(Ledger) as ledger:
        uuid = ids.provider_named(ledger, text).uuid
        planned, done = _changed(ledger, uuid, change, reason, dry_run=dry_run)
        shown = ledger.provider(uuid)
    lines = [*changes_of(planned.effects)]
    if as_json:
        show_json({"provider": shown, "changes": lines, "reshape": done})
        return
    say(f"{shown.name}: {'; '.join(lines) or 'nothing changes'}")
    if done is not None:
        say(f"undo it with: moorage reshape undo {done}")


def _changed(
    ledger: Ledger, uuid: str, change: "Change", reason: str, *, dry_run: bool
) -> "tuple[ReshapePlanned, str | None]":
    """Change a provider; return what it does, and the id of the reshape. Raises Failure: 4.

    The plan is made of what the provider has now. It is made again if that changes meanwhile.
    """
    from moorage.client.plans.changing import change_plan, is_of
    from moorage.client.plans.plan_error import PlanError
    from moorage.client.reshapes import PlanRefusedError, Reshapes
    from moorage.wire.reshapes import ReshapeWanted

    reshapes = Reshapes(server())
    for _ in range(TRIES):
        one = ledger.provider(uuid)
        try:
            plan = change_plan(one, change)
        except PlanError as error:
            raise Failure(CONFLICT, str(error), "conflict") from None
        planned = reshapes.plan(plan)
        if planned.violations:
            raise Failure(CONFLICT, planned.violations[0].message, "reshape_refused")
        if not is_of(planned.effects, one):
            continue
        if dry_run or not planned.effects:
            return planned, None
        try:
            wanted = ReshapeWanted(plan=plan, digest=planned.digest, reason=reason)
            return planned, reshapes.carry_out(wanted).id
        except PlanRefusedError as refusal:
            if refusal.plan.violations:
                raise
    raise Failure(CONFLICT, f"others keep changing provider {uuid}: try again", "reshape_changed")
