"""`moorage explain`: where a query fits, or why it finds nothing."""

import json
from dataclasses import asdict
from typing import IO, Any

import click

from moorage.cli.support.command import administering, at_server
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import FAILED, USAGE, Failure, say, show_json
from moorage.client.decoding import decode_exactly
from moorage.client.ledger import Ledger
from moorage.wire.ledger import (
    Explained,
    ExplainedPlace,
    ExplainedShare,
    ExplainedStep,
    GroupAsked,
    Question,
)

_question_option = click.option(
    "--question",
    type=click.File(),
    metavar="FILE",
    help="File with the whole question as JSON, as for /v1/explain; - is standard input.",
)


_query_option = click.option(
    "--query",
    metavar="QUERY",
    help="The query of GET /allocation_candidates, its address, or a line of a log with it.",
)


@click.command(
    epilog=example(
        "moorage explain VCPU=4 MEMORY_MB=8192 --required HW_CPU_X86_AVX2",
        "moorage explain --query 'resources=VCPU:4&required=HW_CPU_X86_AVX2'",
        "moorage explain --question - < question.json",
    )
)
@administering
@click.argument("resources", nargs=-1, metavar="CLASS=AMOUNT...")
@click.option("--required", multiple=True, metavar="TRAIT", help="Required trait; may be repeated.")
@click.option(
    "--forbidden", multiple=True, metavar="TRAIT", help="Forbidden trait; may be repeated."
)
@click.option(
    "--member-of", multiple=True, metavar="UUID", help="Required aggregate; may be repeated."
)
@_query_option
@_question_option
@json_option
def explain(
    resources: tuple[str, ...],
    required: tuple[str, ...],
    forbidden: tuple[str, ...],
    member_of: tuple[str, ...],
    query: str | None,
    question: IO[str] | None,
    as_json: bool,
) -> None:
    """Say where it fits and what would be left there, or which places come closest.

    Before that, say how many providers meet each condition.
    Asks for the amounts in one tree, for QUERY, or for the question in FILE. The exit code is 1 if
    nothing is found.
    """
    conditions = required or forbidden or member_of
    whole = query is not None or question is not None
    if bool(resources) + (query is not None) + (question is not None) != 1:
        raise Failure(USAGE, "pass exactly one of CLASS=AMOUNT, --query QUERY and --question FILE")
    if query is not None and not query.strip():
        raise Failure(USAGE, "the query is empty: pass one such as 'resources=VCPU:4'")
    if conditions and whole:
        raise Failure(
            USAGE,
            "--required, --forbidden and --member-of are only for CLASS=AMOUNT: add these"
            " conditions to the query or question",
        )
    group = GroupAsked(
        resources=_amounts(resources),
        required=[*required],
        forbidden=[*forbidden],
        member_of=[*member_of],
    )
    asked = Question(groups=[group]) if question is None else _read(question)
    with at_server(Ledger) as ledger:
        explained = ledger.explain(asked) if query is None else ledger.explain_candidates(query)
    if as_json:
        show_json(asdict(explained))
    else:
        _show(explained)
    if not explained.found:
        click.get_current_context().exit(FAILED)


def _amounts(texts: tuple[str, ...]) -> dict[str, int]:
    amounts = [_amount(text) for text in texts]
    if len(dict(amounts)) < len(amounts):
        raise Failure(USAGE, "a class is given more than once: add up its amounts")
    return dict(amounts)


def _amount(text: str) -> tuple[str, int]:
    # Placement's queries have a colon.
    name, _, amount = text.replace(":", "=", 1).partition("=")
    if not (name and amount.isascii() and amount.isdigit()):
        raise Failure(USAGE, f"{text!r} is not CLASS=AMOUNT (for example VCPU=4)")
    return name, int(amount)


def _read(question: IO[str]) -> Question:
    try:
        value: Any = json.load(question)
        return decode_exactly(Question, value)
    except (ValueError, RecursionError) as error:
        raise Failure(USAGE, f"cannot read the question: {error}") from None


def _show(explained: Explained) -> None:
    for part in explained.parts:
        say(part.resource_class or f"group {part.suffix}")
        _show_steps(part.steps)
    if explained.trees:
        say("trees")
        _show_steps(explained.trees)
    if explained.not_offered:
        counts = ", ".join(f"{reason} {n}" for reason, n in explained.not_offered.items())
        say(f"agents that offer too little ({counts})")
        for agent in explained.agents:
            words = (agent.hostname or "-", agent.resource_class, agent.reason, agent.detail)
            say(f"  {agent.agent}", *filter(None, words))
        more = sum(explained.not_offered.values()) - len(explained.agents)
        if more:
            say(f"  and {more} more: moorage agent list --not-offered")
    _show_places(explained)
    _show_misses(explained)
    for condition in explained.without:
        say(f"dropping '{condition}' would give a match")
    say("found" if explained.found else explained.nearest or "nothing is found")


def _show_places(explained: Explained) -> None:
    if explained.places:
        say("places where it fits")
    for place in explained.places:
        say(f"  {place.name}", *(_share_text(place, share) for share in place.shares))
    if explained.more_places:
        most = "" if explained.places_exact else "up to "
        say(f"  and {most}{explained.more_places:,} more")


def _share_text(place: ExplainedPlace, share: ExplainedShare) -> str:
    """Return what would be left of a provider; the root of the tree is named already."""
    left = ", ".join(f"{name}={amount:,}" for name, amount in share.left.items())
    inside = "" if share.provider == place.root else f"{share.name}: "
    return f"{inside}leaving {left}"


def _show_misses(explained: Explained) -> None:
    if explained.misses:
        say("places that come closest")
    several = len({miss.part for miss in explained.misses}) > 1
    for miss in explained.misses:
        part = f"[{miss.part}] " if several and miss.part else ""
        say(f"  {miss.name} {part}{'; '.join(miss.lacks)}")
    if explained.more_misses:
        say(f"  and {explained.more_misses:,} more")


def _show_steps(steps: list[ExplainedStep]) -> None:
    for step in steps:
        say(f"  {'some' if step.left is None else step.left}", step.condition)
