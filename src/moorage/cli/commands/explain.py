"""`moorage explain`: explains why a query finds nothing."""

import json
from dataclasses import asdict
from typing import IO, Any

import click

from moorage.cli.support.command import administering, server
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import FAILED, USAGE, Failure, say, show_json
from moorage.client.decoding import UndecodableError, decode
from moorage.wire.ledger import Explained, ExplainedStep, GroupAsked, Question

_question_option = click.option(
    "--question",
    type=click.File(),
    metavar="FILE",
    help="File with the whole question as JSON, as for /v1/explain; - is standard input.",
)


@click.command(
    epilog=example(
        "moorage explain VCPU=4 MEMORY_MB=8192 --required HW_CPU_X86_AVX2",
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
@_question_option
@json_option
def explain(
    resources: tuple[str, ...],
    required: tuple[str, ...],
    forbidden: tuple[str, ...],
    member_of: tuple[str, ...],
    question: IO[str] | None,
    as_json: bool,
) -> None:
    """Explain how many providers meet each condition, and what comes closest.

    Asks for the amounts in one tree, or the question in FILE. The exit code is 1 if nothing is
    found.
    """
    from moorage.cli.support.backend import (
        refusals_translated,
    )  # deferred: it loads the whole service
    from moorage.client.ledger import Ledger

    if (question is None) == (not resources):
        raise Failure(USAGE, "pass either CLASS=AMOUNT or --question FILE")
    if question is not None:
        asked = _read(question)
    else:
        group = GroupAsked(
            resources=dict(map(_amount, resources)),
            required=[*required],
            forbidden=[*forbidden],
            member_of=[*member_of],
        )
        asked = Question(groups=[group])
    with refusals_translated():
        explained = Ledger(server()).explain(asked)
    if as_json:
        show_json(asdict(explained))
    else:
        _show(explained)
    if not explained.found:
        click.get_current_context().exit(FAILED)


def _amount(text: str) -> tuple[str, int]:
    name, _, amount = text.partition("=")
    if not (name and amount.isascii() and amount.isdigit()):
        raise Failure(USAGE, f"{text!r} is not CLASS=AMOUNT (for example VCPU=4)")
    return name, int(amount)


def _read(question: IO[str]) -> Question:
    try:
        value: Any = json.load(question)
        return decode(Question, value)
    except (UndecodableError, ValueError) as error:
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
    for condition in explained.without:
        say(f"dropping '{condition}' would give a match")
    say("found" if explained.found else explained.nearest or "nothing is found")


def _show_steps(steps: list[ExplainedStep]) -> None:
    for step in steps:
        say(f"  {'some' if step.left is None else step.left}", step.condition)
