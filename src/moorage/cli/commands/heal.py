"""`moorage heal`: releases what an audit has found, in one reshape that can be undone."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.command import administering, server
from moorage.cli.support.documents import read
from moorage.cli.support.options import example, json_option, wide_option
from moorage.cli.support.output import CONFLICT, FAILED, USAGE, Failure, say, show_json
from moorage.cli.support.tables import Column, show_rows
from moorage.cli.support.terminal import can_ask
from moorage.client.ledger import Ledger
from moorage.client.reshapes import PlanRefusedError, Reshapes
from moorage.client.transport import RefusedError
from moorage.integrations.nova.findings import CODES
from moorage.integrations.nova.healing import (
    AT_ONCE,
    Entry,
    Skipped,
    changed,
    entries_of,
    plan_of,
    refused,
)
from moorage.wire.reshapes import ReshapeWanted

if TYPE_CHECKING:
    from moorage.wire.providers import ConsumerShown

TRIES = 10
"""How often a plan is made without those that have changed meanwhile."""

NOT_FOUND = 404

COLUMNS = (
    Column("code"),
    Column("host", least=12),
    Column("subject"),
    Column("what", least=16, last=True),
)


@click.command(
    epilog=example("moorage heal plan.json --dry-run", "moorage heal plan.json --only orphan --yes")
)
@administering
@click.argument("path", metavar="FILE", type=click.Path())
@click.option("--dry-run", is_flag=True, help="Print what would be healed; change nothing.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice([*CODES]),
    metavar="CODE",
    help="Heal only findings with this code; may be repeated.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@wide_option
@json_option
def heal(
    path: str, dry_run: bool, only: tuple[str, ...], yes: bool, wide: bool, as_json: bool
) -> None:
    """Release what an audit has found, as FILE has it.

    All of it is one reshape, which `moorage reshape undo` undoes. Consumers and providers that have
    changed since the audit are skipped, and listed. Large files are several reshapes.

    The exit code is 4 if nothing is left to heal.
    """
    if not (dry_run or yes or can_ask(as_json=as_json)):
        raise Failure(
            USAGE,
            "cannot ask for confirmation without a terminal or with --json: add --yes, or look at"
            " --dry-run",
        )
    found = read(path, "the plan of a heal", entries_of)
    entries = [one for one in found if not only or one.code in only]
    with _refusals():
        transport = server()
        work = _Heal(Ledger(transport), Reshapes(transport))
        healed = work.fitting(entries)
        if not as_json:
            _show(healed, work.skipped, wide=wide)
        done: list[str] = []
        if healed and not dry_run:
            if not yes and not click.confirm("Heal these?"):
                raise Failure(FAILED, "nothing was changed")
            before = len(work.skipped)
            for one in work.carry_out(healed):
                done.append(one)
                if not as_json:  # at once: a later part may fail
                    say(f"undo it with: moorage reshape undo {one}")
            if not as_json:
                _show([], work.skipped[before:], wide=wide)
    if as_json:
        show_json(_document(work.healed if done else healed, work.skipped, done))
    if not healed:
        raise Failure(CONFLICT, "nothing is left to heal")


class _Heal:
    """What is done, and `skipped`: what is not."""

    def __init__(self, ledger: Ledger, reshapes: Reshapes) -> None:
        self._ledger, self._reshapes = ledger, reshapes
        self.healed: list[Entry] = []
        self.skipped: list[Skipped] = []

    def fitting(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return what can be healed now; the rest is skipped."""
        left = []
        for entry in entries:
            reason = changed(entry, self._consumer(entry.consumer)) if entry.consumer else ""
            if reason:
                self.skipped.append(Skipped(entry, reason))
            else:
                left.append(entry)
        return [entry for part in _parts(left) for entry in self._planned(part)[0]]

    def carry_out(self, entries: Sequence[Entry]) -> Iterator[str]:
        """Heal; yield the id of each reshape when it is done."""
        for part in _parts(entries):
            if (done := self._carried_out(part)) is not None:
                yield done

    def _carried_out(self, part: list[Entry]) -> str | None:
        for _ in range(TRIES):
            part, digest = self._planned(part)
            if not part:
                return None
            wanted = ReshapeWanted(plan=plan_of(part), digest=digest, reason="moorage heal")
            try:
                done = self._reshapes.carry_out(wanted)
            except PlanRefusedError:
                continue  # somebody was faster: the next plan says who
            self.healed += part
            return done.id
        raise Failure(CONFLICT, "the ledger changes faster than it can be healed: try again")

    def _planned(self, part: list[Entry]) -> tuple[list[Entry], str]:
        """Return those whose plan has no violations, and its digest."""
        while part:
            planned = self._reshapes.plan(plan_of(part))
            if not planned.violations:
                return part, planned.digest
            blamed = refused(part, planned.violations)
            if not blamed:
                raise Failure(CONFLICT, planned.violations[0].message, "reshape_refused")
            self.skipped += blamed
            gone = {one.entry for one in blamed}
            part = [one for one in part if one not in gone]
        return [], ""

    def _consumer(self, uuid: str) -> "ConsumerShown | None":
        try:
            return self._ledger.consumer(uuid)
        except RefusedError as refusal:
            if refusal.status != NOT_FOUND:
                raise
            return None


def _parts(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    for first in range(0, len(entries), AT_ONCE):
        yield [*entries[first : first + AT_ONCE]]


@contextmanager
def _refusals() -> Iterator[None]:
    from moorage.cli.support.backend import refusals_translated

    with refusals_translated():
        yield


def _show(healed: Sequence[Entry], skipped: Sequence[Skipped], *, wide: bool) -> None:
    rows = [
        [one.code, one.host, one.subject, "delete" if one.delete else "release"] for one in healed
    ]
    rows += [
        [one.entry.code, one.entry.host, one.entry.subject, f"skipped: {one.reason}"]
        for one in skipped
    ]
    if rows:
        show_rows(COLUMNS, rows, wide=wide)


def _document(
    healed: Sequence[Entry], skipped: Sequence[Skipped], done: Sequence[str]
) -> dict[str, Any]:
    return {
        "heal": [{"code": one.code, "subject": one.subject} for one in healed],
        "skipped": [
            {"code": one.entry.code, "subject": one.entry.subject, "reason": one.reason}
            for one in skipped
        ],
        "reshapes": [*done],
    }
