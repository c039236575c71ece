"""Compares a page with the ledger as of the revisions that it names. Standard library only."""

import re
from collections.abc import Iterable

from tests.faces.dashboard.support.browserless import Section
from tests.faces.dashboard.support.history import History, State
from tests.faces.dashboard.support.writer import POOLS

SHOWN = 100
"""Leases, and tickets, that a page shows at most."""

FIT = ("VCPU", 4)
PATHS = (
    "/ui",
    "/ui/pools",
    *(f"/ui/pools/{name}" for name in POOLS),
    "/ui/leases?state=granted",
    f"/ui/leases?state=waiting&pool={POOLS[0]}",
    "/ui/fleet",
    "/ui/fleet?by=aggregate",
    "/ui/fleet/machines",
    f"/ui/fit?resources={FIT[0]}:{FIT[1]}",
)
"""The pages whose totals are checked."""

READ_LONGER = ("/ui/fleet/machines", "/ui/fit")
"""Pages that name two revisions if the ledger has changed each time that they were read."""

NAMED = re.compile(r"1\.(\d+)(?: to 1\.(\d+))?")
"""A revision, or two: what the page shows was read from one to the other."""

Figures = dict[str, list[int]]


def expected(path: str, number: int, state: State) -> Figures:
    """Return the figures of a page's n-th section."""
    if path == "/ui":
        if number:
            sums = state.classes()
            return {name: sums[name] for name in sums if not name.endswith(".free")}
        return _ascending(state.pools())
    if path == "/ui/pools":
        return state.pools()
    if path.startswith("/ui/pools/"):
        return state.pool(path.removeprefix("/ui/pools/"))
    if path.startswith("/ui/leases"):
        return {}
    if path == "/ui/fleet/machines":
        return state.machines()
    if path.startswith("/ui/fit"):
        return state.fit(*FIT)
    return state.classes(by_aggregate=path.endswith("by=aggregate"))


def rows(path: str, state: State) -> list[set[str]]:
    """Return the ids of leases and of tickets of which a page shows the first ones."""
    if path.startswith("/ui/pools/"):
        name = path.removeprefix("/ui/pools/")
        found = {"lease": state.leases("granted", name), "ticket": state.leases("waiting", name)}
    elif path == "/ui/leases?state=granted":
        found = {"lease": state.leases("granted")}
    elif path.startswith("/ui/leases"):
        found = {"lease": state.leases("waiting", path.rpartition("=")[2])}
    else:
        found = {}
    return [{f"{kind}-{key}" for key, _ in some} for kind, some in found.items()]


def numbers(section: Section) -> Figures:
    """Return the figures of a section; units that rest depend on the time of the reader."""
    return {
        name: [int(text.replace(",", "")) for text in texts]
        for name, texts in section.figures.items()
        if name != "resting"
    }


class Mismatch(AssertionError):
    """A page does not show the ledger of its revision."""


def check(path: str, sections: Iterable[Section], history: History) -> tuple[bool, bool]:
    """Compare a page with the ledger. Raises Mismatch.

    Returns whether each section is as of one revision, and whether the figures of the revision
    before were others.
    """
    whole, moved, count = True, False, 0
    for number, section in enumerate(sections):
        named = NAMED.fullmatch(section.revision)
        if named is None or (named[2] and not path.startswith(READ_LONGER)):
            raise Mismatch(f"{path} names no revision: {section.revision!r}")
        first = int(named[1])
        before, *states = (history.at(one) for one in range(first - 1, int(named[2] or first) + 1))
        wanted = [expected(path, number, state) for state in states]
        shown = numbers(section)
        if path == "/ui":
            shown = _ascending(shown)
        wrong = {
            name: (shown.get(name), wanted[-1].get(name))
            for name in {*shown, *wanted[-1]}
            if shown.get(name) not in [one.get(name) for one in wanted]
        }
        if wrong:
            raise Mismatch(f"{path} at {section.revision} shows, instead of the ledger: {wrong}")
        _check_rows(path, section, states[-1])
        whole &= len(states) == 1
        moved |= expected(path, number, before) != wanted[0]
        count += 1
    if not count:
        raise Mismatch(f"{path} names no revision")
    return whole, moved


def _check_rows(path: str, section: Section, state: State) -> None:
    wanted = rows(path, state)
    shown = {row for row in section.rows if row.startswith(("lease-", "ticket-"))}
    if shown - set().union(*wanted):
        raise Mismatch(f"{path} at {section.revision} has {shown - set().union(*wanted)}")
    for some in wanted:
        if len(shown & some) != min(SHOWN, len(some)):
            raise Mismatch(f"{path} at {section.revision} lacks some of {some - shown}")


def _ascending(figures: Figures) -> Figures:
    """Return the figures in ascending order: the overview has the fullest pools first."""
    return {name: sorted(counts) for name, counts in figures.items()}
