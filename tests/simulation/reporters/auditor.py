"""What must always be true of groups of reporters, from what was committed and what Ironic had.

The auditor has its own books of members, tokens, pins and of what each node was like; it uses
nothing of the rules under test. A member whose liveness depends on an outage of the service may be
live or not; then either is right.

R1  At one revision, one member at most writes a node.
R2  What is accepted has the newest token of a member that has joined and not left.
R3  Tokens of a group rise, and none is given twice.
R4  Only the owner of a node writes it: its pin, otherwise the live member with the highest score.
R5  An owner is not refused: after the TTL of a silent member the others have its nodes.
R6  What was read earlier never follows what was read later, while there is such a node.
R7  What is written differs from what was there.
R8  Nothing is removed that Ironic had all the time, nor created that it has had no more for long.
R9  Traits that others have set stay.
R10 When the faults end, the ledger says what Ironic has, after one full reading.
R11 No reporter gives up a sign of life: it could arrive after its leaving, and be a new member.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, combinations
from typing import Any

from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import NO_TAGS
from moorage.core.ledger.reported import NodeAnswer, ReportOutcome
from moorage.service.batch.world import Changes
from moorage.service.fleet.reporter_cases import Join, Leave, PinNodes, ReportUnit

VERSION = "CUSTOM_VERSION_"
FOREIGN = "CUSTOM_FOREIGN"
SLACK = 0.01
"""Seconds within which the time of a batch and that of the world may differ."""

LOST_BEAT = 6.0
"""What a killed process may not have saved of its last seconds."""

DONE = (ReportOutcome.CREATED, ReportOutcome.UPDATED, ReportOutcome.REMOVED)


class Violation(AssertionError):
    """Something is not as it must be."""


@dataclass
class Booked:
    """A member, as the answers to its joining say."""

    token: tuple[int, int]
    ttl: float
    heard: float
    outage: bool = False
    """Whether the service was away since it was heard."""
    away: float = 0.0
    """For how long at most."""


@dataclass
class Auditor:
    """The books of one group."""

    now: Callable[[], float]
    version_of: Callable[[str], int | None]
    """The version of a node that Ironic has now; None: it has no such node."""
    lately: float
    """For how many seconds a reporter may believe that a deleted node exists."""
    members: dict[str, Booked] = field(default_factory=dict)
    tokens: set[tuple[int, int]] = field(default_factory=set)
    pins: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    """The latest version of each node that was written."""
    created: dict[str, float] = field(default_factory=dict)
    """When each provider was written last."""
    missing: dict[str, float] = field(default_factory=dict)
    """When Ironic last had no such node."""
    began: float | None = None
    accepted: int = 0
    fenced: int = 0
    moved: int = 0
    removed: int = 0
    writers: dict[str, str] = field(default_factory=dict)

    # What the world says.

    def outage_began(self) -> None:
        """The service is away."""
        self.began = self.now() if self.began is None else self.began

    def outage_ended(self) -> None:
        """The service is back."""
        if self.began is not None:
            for one in self.members.values():
                one.outage = True
                one.away += self.now() - self.began + LOST_BEAT
            self.began = None

    def deleted(self, uuid: str) -> None:
        """Ironic has no such node any more."""
        self.missing[uuid] = self.now()

    # What was committed.

    def committed(
        self, before: Facts, after: Facts, cases: Sequence[Any], outcomes: Sequence[Any]
    ) -> None:
        """Check a batch."""
        writers: dict[str, set[str]] = {}
        for case, outcome in zip(cases, outcomes, strict=True):
            if isinstance(case, ReportUnit):
                self._reported(case, outcome, writers)
            elif isinstance(outcome, Error):
                continue
            elif isinstance(case, Join):
                self._joined(case, outcome)
            elif isinstance(case, Leave):
                self._left(case, outcome)
            elif isinstance(case, PinNodes):
                for node in case.nodes:
                    self.pins.pop(node, None)
                    if case.member is not None:
                        self.pins[node] = case.member
        for uuid, names in writers.items():
            check(len(names) == 1, "R1", f"{uuid} is written by {names}")
            (name,) = names
            self.moved += self.writers.get(uuid, name) != name
            self.writers[uuid] = name
        self._written(before, after, set(writers))

    def _joined(self, case: Join, made: Changes) -> None:
        assert made.fleet is not None
        joined = made.fleet.members.get((case.group, case.name))
        known = self.members.get(case.name)
        if joined is None:
            check(known is not None, "R2", f"{case.name} stays, but has left")
            assert known is not None
            live = self._is_live(case.name)
            check(live is not False, "R3", f"{case.name} was silent for too long, but stays")
            known.heard, known.outage, known.away = self.now(), False, 0.0
            return
        epoch, number = map(int, joined.token.split("."))
        token = (epoch, number)
        if known is None or token != known.token:
            check(token > max(self.tokens, default=(0, 0)), "R3", f"{token} after {self.tokens}")
            self.tokens.add(token)
        self.members[case.name] = Booked(token, case.ttl / SECOND, self.now())

    def _left(self, case: Leave, made: Changes) -> None:
        if made.fleet is not None and (case.group, case.name) in made.fleet.members:
            self.members.pop(case.name, None)

    def _reported(
        self, case: ReportUnit, outcome: Changes | Error, writers: dict[str, set[str]]
    ) -> None:
        name = case.sender.member
        known = self.members.get(name)
        newest = known is not None and case.sender.token == f"{known.token[0]}.{known.token[1]}"
        if isinstance(outcome, Error):
            check(outcome.code != Code.FENCED or not newest, "R5", f"{name} is fenced")
            return
        check(newest, "R2", f"{case.sender} is accepted; the newest is {known}")
        for node, answer in zip(case.nodes, case.answer, strict=True):
            self._judged(name, node, answer, writers)

    def _judged(
        self, name: str, node: Any, answer: NodeAnswer, writers: dict[str, set[str]]
    ) -> None:
        owners = self.owners(node.uuid)
        if answer.refusal is not None and answer.refusal.code == Code.NOT_OWNER:
            check(owners != {name}, "R5", f"{node.uuid} is {name}'s, who is refused")
            return
        check(name in owners, "R4", f"{name} writes {node.uuid} of {owners}")
        if answer.outcome not in DONE:
            return
        self.accepted += 1
        writers.setdefault(node.uuid, set()).add(name)
        if node.absent:
            since = self.created.get(node.uuid, 0.0)
            gone = self.version_of(node.uuid) is None or self.missing.get(node.uuid, -1.0) >= since
            check(gone, "R8", f"{node.uuid} is removed, but Ironic has had it since {since}")
            self.removed += answer.outcome is ReportOutcome.REMOVED
            return
        if answer.outcome is ReportOutcome.CREATED:
            self.created[node.uuid] = self.now()
        version = version_in(node.traits)
        if self.version_of(node.uuid) is not None:
            last = self.versions.get(node.uuid, 0)
            check(version >= last, "R6", f"{node.uuid}: {version} follows {last}")
            self.versions[node.uuid] = version
        elif answer.outcome is ReportOutcome.CREATED:
            gone = self.now() - self.missing[node.uuid]
            check(gone <= self.lately, "R8", f"{node.uuid} is created, but is gone for {gone} s")

    def _written(self, before: Facts, after: Facts, written: set[str]) -> None:
        """Compare the providers that were written before and after the batch."""
        for uuid in written:
            old, new = _content(before, uuid), _content(after, uuid)
            check(old != new, "R7", f"{uuid} is written, and is as it was: {new}")
            if old is not None and new is not None and FOREIGN in old[2]:
                check(FOREIGN in new[2], "R9", f"{uuid} has lost a trait of somebody else")

    # Who owns what.

    def owners(self, node: str) -> set[str]:
        """Return who may own a node now; more than one if that depends on an outage."""
        if (pinned := self.pins.get(node)) is not None:
            return {pinned}
        sure = [name for name in self.members if self._is_live(name)]
        perhaps = [name for name in self.members if self._is_live(name) is None]
        subsets = chain.from_iterable(
            combinations(perhaps, size) for size in range(len(perhaps) + 1)
        )
        return {
            max(live, key=lambda name: _score(name, node))
            for some in subsets
            if (live := [*sure, *some])
        }

    def _is_live(self, name: str) -> bool | None:
        """Return whether a member is live; None: it depends on an outage."""
        one = self.members[name]
        silent = self.now() - one.heard
        if silent < one.ttl - SLACK:
            return True
        if not one.outage:
            return False if silent > one.ttl + SLACK else None
        return False if silent - one.away > 2 * one.ttl + SLACK else None


def check(holds: bool, number: str, words: str) -> None:
    """Raise Violation unless something holds."""
    if not holds:
        raise Violation(f"{number} {words}")


def version_in(traits: Any) -> int:
    """Return the version of a node that traits name."""
    found = [trait for trait in traits or () if trait.startswith(VERSION)]
    return int(found[0].removeprefix(VERSION)) if found else 0


def _content(facts: Facts, uuid: Any) -> tuple[Any, ...] | None:
    provider = facts.providers.get(uuid)
    if provider is None:
        return None
    tags = facts.tags.get(uuid, NO_TAGS)
    figures = {name: (one.total, one.reserved) for name, one in facts.inventories_of(uuid).items()}
    return provider.name, figures, tags.traits, tags.aggregates, tags.reported


def _score(member: str, node: str) -> tuple[int, str]:
    digest = blake2b(f"{member}|{node}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big"), member
