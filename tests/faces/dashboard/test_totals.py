"""Every total on a page equals the sum over the ledger as of the revision that the page names.

The sums are computed from the change feed, by a model that knows nothing but its values. Meanwhile
a writer changes pools, leases, providers and allocations without a pause.
"""

import random
import re
from collections import Counter

import pytest

from tests.e2e.support.chance import seeded
from tests.faces.dashboard.support.browserless import Section, signed_in
from tests.faces.dashboard.support.history import History
from tests.faces.dashboard.support.totals import PATHS, Mismatch, check
from tests.faces.dashboard.support.writer import ACTIONS, Writer, pools_made
from tests.faces.v1.native import Native

pytestmark = pytest.mark.thorough

STATES = 500
"""Pages read on each engine."""


def bars_fit(page: str) -> bool:
    """Return whether every bar of a pool is as long as its figures say, and never too long."""
    for bar in page.split('<svg class="bar"')[1:]:
        label, _, parts = bar.partition("</svg>")[0].partition(">")
        widths = [float(one) for one in re.findall(r'x="[^"]*" width="([^"]*)"', parts)]
        if sum(widths) > 100.001:
            return False
        found = re.search(r'aria-label="(\d+) of (\d+) units', label)
        if found:
            used, units = int(found[1]), int(found[2])
            share = 100.0 if used >= max(1, units) else 100 * used / max(1, units)
            if abs(sum(widths[:1]) - share) > 0.001:
                return False
    return True


def test_totals_are_those_of_the_revision(peers: list[Native]) -> None:
    """On every page with sums, and the bars fit as well."""
    pools_made(peers[0])
    browser, history = signed_in(peers[0], "reader"), History(peers[0])
    revisions, counts = set(), Counter[str]()
    with seeded() as seed:
        writer, dice = Writer(peers[-1], seed), random.Random(seed)
        writer.start()
        try:
            for _ in range(STATES):
                path = dice.choice(PATHS)
                page = browser.get(path)
                assert page.status == 200, page
                assert bars_fit(page.body)
                sections = page.document.sections
                whole, moved = check(path, sections, history)
                counts.update(whole=whole, moved=moved)
                revisions.add(sections[0].revision)
        finally:
            writer.stop()
    assert len(revisions) > STATES // 10, "the ledger has hardly changed"
    assert counts["moved"] > 0, "figures of an earlier revision must differ at times"
    assert counts["whole"] > STATES * 0.9, "a page may name two revisions, but few do"
    assert {*writer.done} == ACTIONS, writer.done


def test_a_wrong_total_is_found(native: Native) -> None:
    """The control: a figure one off, a revision one off, and a page without one."""
    pools_made(native)
    history, path = History(native), "/ui/pools/a"
    (section,) = signed_in(native, "reader").get(path).document.sections
    assert check(path, [section], history)
    figures = section.figures
    off = section._replace(figures={**figures, "units": ["4"]})
    missing = section._replace(figures={key: figures[key] for key in figures if key != "units"})
    assert native.ask("PUT", "/v1/pools/a", {"limit": 4, "pacing": None}).status == 200
    revision = int(section.revision.partition(".")[2])
    later = Section(f"1.{revision + 1}", section.figures, section.rows)
    more = section._replace(rows=["lease-1"])
    for wrong in ([off], [missing], [later], [more], []):
        with pytest.raises(Mismatch):
            check(path, wrong, history)
