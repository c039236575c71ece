"""A heal: one reshape plan that releases what an audit has found, if it is unchanged. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from moorage.integrations.nova.findings import CODES
from moorage.integrations.nova.plan_file import KIND
from moorage.wire.providers import ConsumerShown
from moorage.wire.reshapes import ReshapeGenerations, ReshapePlan, ReshapeViolation

AT_ONCE: Final = 2_000
"""Entries of one reshape; its size is limited in bytes, too."""


class PlanFileError(ValueError):
    """A file is not what an audit has written. The message says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding to heal; see `Finding`."""

    code: str
    consumer: str
    provider: str
    generation: int
    host: str
    release: tuple[str, ...]
    delete: tuple[str, ...]

    @property
    def subject(self) -> str:
        """Return the UUID of what it is about."""
        return self.consumer or self.provider


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry that is not healed, and why."""

    entry: Entry
    reason: str


def entries_of(document: Any) -> list[Entry]:
    """Read the file of an audit. Raises PlanFileError."""
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise PlanFileError("it is not a plan of moorage audit nova")
    try:
        return [_entry(one) for one in document["heal"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise PlanFileError("one of its entries cannot be read") from None


def _entry(one: Mapping[str, Any]) -> Entry:
    entry = Entry(
        code=str(one["code"]),
        consumer=str(one.get("consumer", "")),
        provider=str(one.get("provider", "")),
        generation=int(one["generation"]),
        host=str(one.get("host", "")),
        release=tuple(map(str, one.get("release", {}))),
        delete=tuple(map(str, one.get("delete", ()))),
    )
    if entry.code not in CODES or not (entry.release or entry.delete):
        raise ValueError(entry.code)
    if bool(entry.release) != bool(entry.consumer):
        raise ValueError(entry.subject)
    return entry


def changed(entry: Entry, now: ConsumerShown | None) -> str:
    """Return why a consumer is not healed: it is not as the audit has seen it; empty: it is."""
    if now is None:
        return "it holds nothing any more"
    if now.generation != entry.generation:
        return f"it has changed: its generation is {now.generation}, not {entry.generation}"
    return ""


def plan_of(entries: Iterable[Entry]) -> ReshapePlan:
    """Return the plan that heals entries, and that is refused if one of them has changed."""
    vacate: dict[str, set[str]] = {}
    delete: dict[str, None] = {}
    expect = ReshapeGenerations()
    for one in entries:
        delete.update(dict.fromkeys(one.delete))
        if one.consumer:
            vacate.setdefault(one.consumer, set()).update(one.release)
            expect.consumers[one.consumer] = one.generation
        else:
            expect.providers[one.provider] = one.generation
    return ReshapePlan(
        vacate={uuid: sorted(them) for uuid, them in vacate.items()},
        release=[*vacate],
        delete=[*delete],
        expect=expect,
        cross_tree=True,
    )


def refused(entries: Collection[Entry], violations: Iterable[ReshapeViolation]) -> list[Skipped]:
    """Return the entries that are to blame for violations: without them there are fewer."""
    by_subject: dict[str, str] = {}
    for one in violations:
        for subject in (one.consumer, one.provider):
            if subject is not None:
                by_subject.setdefault(subject, one.message)
    found = []
    for entry in entries:
        subjects = (entry.consumer, *entry.delete, *(() if entry.consumer else (entry.provider,)))
        reasons = [by_subject[one] for one in subjects if one in by_subject]
        if reasons:
            found.append(Skipped(entry, reasons[0]))
    return found
