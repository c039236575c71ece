"""Asks the original and Moorage the same, side by side, and tells where they differ.

Both may be in use: a difference is looked at again, and counts only if it is still there.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec

from moorage.client.transport import UNAUTHORIZED, RefusedError
from moorage.integrations.placement.asking import MISFITS, PlacementApi, not_placement
from moorage.integrations.placement.judging import (
    ABSENT,
    ROUNDED,
    Circumstances,
    Difference,
    Question,
    collapsed,
    differences,
    fails,
    is_rounded,
    walk,
)
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.reading import Progress, Source
from moorage.integrations.placement.rows import KINDS, RowKind, Rows
from moorage.integrations.placement.sampling import Sample, Sizes
from moorage.integrations.placement.source_error import SourceError
from moorage.integrations.placement.whole_ledger import WholeLedger

LOOKS = 3
"""How often a difference is looked at, at most."""

PAUSE_SECONDS = 1.0
"""Between two looks at the same difference."""

IN_FLIGHT = 8
"""Questions at the same time; each is asked of both."""

BEFORE_TYPES = 37
"""The last microversion without consumer types."""

TIMES = ("created_at", "updated_at")

UNDER_WAY = "import_not_found"


@dataclass
class Kind:
    """The differences of one kind: how many, and the first."""

    example: Difference
    count: int = 0


@dataclass
class Verified:
    """What a comparison has found. `known` are differences that are decided."""

    compared: dict[str, int] = field(default_factory=dict)
    refused: int = 0
    """Questions that both refuse, so that nothing was compared."""
    passing: int = 0
    """Questions and rows that differed only for a moment."""
    odd: dict[str, int] = field(default_factory=dict)
    """Data of the original's database that cannot be compared as it is, by code."""
    found: dict[str, Kind] = field(default_factory=dict)
    known: dict[str, Kind] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Whether there is no difference but known ones."""
        return not self.found

    def add(self, those: Iterable[Difference]) -> None:
        """Count differences."""
        for one in those:
            kinds = self.known if one.known else self.found
            kinds.setdefault(one.kind, Kind(one)).count += 1


class Verification:
    """The comparison of one original with the ledger of one server.

    Calls raise SourceError, and the errors of `WholeLedger` and `PlacementApi`.
    """

    def __init__(
        self, original: PlacementApi, ours: PlacementApi, ledger: WholeLedger, progress: Progress
    ) -> None:
        """Prepare; `ours` and `ledger` are the two APIs of one server."""
        self._original = original
        self._ours = ours
        self._ledger = ledger
        self._progress = progress
        self._around = Circumstances(("", ""), 0.0)

    def run(self, sizes: Sizes, seconds: float, verified: Verified) -> None:
        """Ask all questions of a sample; times may differ by some seconds."""
        try:
            self._run(sizes, seconds, verified)
        except MISFITS as error:
            raise not_placement(self._original.url, error) from None
        finally:
            self._original.close()
            self._ours.close()

    def _run(self, sizes: Sizes, seconds: float, verified: Verified) -> None:
        minor = min(self._original.agree(), self._ours.agree())
        self._original.minor = self._ours.minor = minor
        self._check_used()
        rows = self._ledger.read(self._progress).rows
        listed = self._original.get("/resource_providers")
        if listed.status != 200:
            hint = ": the token needs the role admin" if listed.status in (401, 403) else ""
            raise SourceError(
                f"{self._original.url} answers {listed.status} to GET /resource_providers{hint}"
            )
        others = {one["uuid"] for one in listed.value["resource_providers"]}
        sample = Sample(rows, others, sizes, minor)
        self._around = Circumstances(
            (self._original.prefix, self._ours.prefix),
            seconds,
            sample.sharing,
            frozenset(uuid for uuid, _ in self._ledger.offered()),
            sample.rounded,
        )
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            for what, questions in sample.parts():
                self._ask_part(pool, what, questions, verified)

    def _check_used(self) -> None:
        try:
            shown = self._ledger.under_way()
        except RefusedError as refusal:
            if refusal.code == UNDER_WAY:
                return
            raise
        raise SourceError(
            f"{shown.source} is being imported: until --finish, the Placement API answers 503, and"
            " only the rows can be compared (--database)"
        )

    def _ask_part(
        self, pool: ThreadPoolExecutor, what: str, questions: list[Question], verified: Verified
    ) -> None:
        """Ask questions; those that differ again, until they agree or nothing has changed."""
        verified.compared[what] = len(questions)
        told = _Told(self._progress, what, len(questions))
        differing: dict[Question, list[Difference]] = {}
        for question, found, refused in self._asked(pool, questions, told):
            verified.refused += refused
            if any(not one.known for one in found):
                differing[question] = found
            else:
                verified.add(found)
        for _ in range(1, LOOKS):
            if not differing:
                return
            threading.Event().wait(PAUSE_SECONDS)
            again, differing = differing, {}
            told = _Told(self._progress, f"{what}, again", len(again))
            for question, found, _ in self._asked(pool, list(again), told):
                before = {(one.kind, one.at) for one in again[question]}
                stayed = [one for one in found if one.known or (one.kind, one.at) in before]
                if any(not one.known for one in stayed):
                    differing[question] = stayed
                else:
                    verified.passing += 1
                    verified.add(stayed)
        for found in differing.values():
            verified.add(found)

    def _asked(
        self, pool: ThreadPoolExecutor, questions: list[Question], told: "_Told"
    ) -> Iterator[tuple[Question, list[Difference], bool]]:
        """Yield each question with its differences, and whether both refuse it."""
        rest = iter(questions)
        under_way: dict[Future[tuple[list[Difference], bool]], Question] = {}
        while True:
            for question in islice(rest, 2 * IN_FLIGHT - len(under_way)):
                under_way[pool.submit(self._ask, question)] = question
            if not under_way:
                return
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                yield under_way.pop(future), *future.result()
                told()

    def _ask(self, question: Question) -> tuple[list[Difference], bool]:
        theirs = self._original.get(question.path)
        ours = self._ours.get(question.path)
        for side, answer in ((self._original, theirs), (self._ours, ours)):
            if answer.status == UNAUTHORIZED:
                raise SourceError(
                    f"{side.url} answers 401 to GET {question.path}: its token is not valid any"
                    " longer"
                )
        refused = theirs.status >= 300 and ours.status >= 300
        found = list(differences(question, theirs, ours, self._around))
        if fails(question, theirs):
            theirs, ours = (
                side.get(question.path, BEFORE_TYPES) for side in (self._original, self._ours)
            )
            found += differences(question, theirs, ours, self._around)
        return found, refused


class _Told:
    """Tells of progress, one by one."""

    def __init__(self, progress: Progress, what: str, total: int) -> None:
        self._progress = progress
        self._what = what
        self._total = total
        self._done = 0

    def __call__(self) -> None:
        self._done += 1
        self._progress(self._what, self._done, self._total)


def verify_rows(
    source: Source,
    ledger: WholeLedger,
    oddities: Callable[[], Oddities],
    seconds: float,
    progress: Progress,
    verified: Verified,
) -> None:
    """Compare every row of the original's database with ours.

    Rows that differ are read once more, all together, because both may be in use.
    """
    found: dict[tuple[RowKind, str], list[Difference]] = {}
    for look in range(2):
        odd = oddities()
        theirs = source.read(odd, progress).rows
        ours = ledger.read(progress).rows
        verified.compared["rows"] = sum(theirs.counts().values())
        now = dict(_rows_differing(theirs, ours, seconds))
        if look and found:
            verified.passing += len(found.keys() - now.keys())
            now = {key: those for key, those in now.items() if key in found}
        found = now
        verified.odd = {code: those.count for code, those in odd.refused()}
        if not found:
            break
    for those in found.values():
        verified.add(those)


def _rows_differing(
    theirs: Rows, ours: Rows, seconds: float
) -> Iterator[tuple[tuple[RowKind, str], list[Difference]]]:
    for kind in KINDS:
        left, right = theirs.of(kind), ours.of(kind)
        for key in sorted(left.keys() | right.keys()):
            if left.get(key) != right.get(key):
                those = list(_row_differences(kind, key, left.get(key), right.get(key), seconds))
                if those:
                    yield (kind, key), those


def _row_differences(
    kind: RowKind, key: str, theirs: bytes | None, ours: bytes | None, seconds: float
) -> Iterator[Difference]:
    one, other = (None if row is None else msgspec.json.decode(row) for row in (theirs, ours))
    if one is None or other is None:
        where = "only of Moorage" if one is None else "only of the original"
        left, right = (ABSENT if row is None else row for row in (one, other))
        yield Difference(f"row of {kind}: {where}", key, "", left, right)
        return
    for at, left, right in walk(_plain(one), _plain(other)):
        if at[-1] in TIMES and _near(left, right, seconds):
            continue
        name = f"row of {kind}: {'/'.join(map(collapsed, at))}"
        known = ROUNDED if is_rounded(left, right, at) else ""
        yield Difference(name, key, "/".join(at), left, right, known)


def _plain(value: Any) -> Any:
    """Return a row whose lists, of names, are objects."""
    if isinstance(value, dict):
        return {key: _plain(of) for key, of in value.items()}
    return dict.fromkeys(value, True) if isinstance(value, list) else value


def _near(one: Any, other: Any, seconds: float) -> bool:
    """Return whether times differ by little only."""
    first, second = _time(one), _time(other)
    if first is None or second is None:
        return False
    # Whole seconds of one may be filled with the order of rows in the other.
    return abs((first - second).total_seconds()) < seconds + 1


def _time(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None
