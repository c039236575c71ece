"""Each clock of PostgreSQL is one row: found at once, and exact with concurrent writers."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import RawCursor

from moorage.store.sql import blocks
from tests.support import cluster

VERSIONS = 3_000
"""Versions of a row, all kept by an open snapshot; they take about thirty pages."""

PAGES_MAX = 16
"""The pages that reading a clock may touch: a few of its index, a few of its table."""

Session = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def url() -> Iterator[str]:
    """Return the address of an empty ledger."""
    made = cluster.fresh()
    yield made
    cluster.shared().drop(cluster.database_of(made))


def connected(url: str) -> Session:
    """Connect with the settings of a writer."""
    session = psycopg.connect(url, cursor_factory=RawCursor, autocommit=True)
    session.execute("SET enable_seqscan = off")
    session.execute("SET plan_cache_mode = force_generic_plan")
    return session


def asked(session: Session, block: str, *params: str) -> list[tuple[Any, ...]]:
    """Run a statement of the engine."""
    cursor = session.execute(blocks("postgres")[block].encode(), params)
    return cursor.fetchall() if cursor.description else []


def raised(session: Session) -> tuple[int, int]:
    """Raise the revision; return it and the epoch."""
    ((revision, epoch, *_),) = asked(session, "clock_raise", "0")
    return revision, epoch


def timeline(n: int) -> tuple[str, ...]:
    """Return the parameters of a timeline with this skew."""
    return (f"{{{n}}}", *["{0}"] * 3)


def pages(session: Session, text: str, *params: str) -> int:
    """Return how many pages a statement touches; roll its changes back."""
    with session.transaction(force_rollback=True):
        ((plan,),) = session.execute(
            b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + text.rstrip(";").encode(), params
        ).fetchall()
    top = plan[0]["Plan"]
    return int(top["Shared Hit Blocks"]) + int(top["Shared Read Blocks"])


LOOKS: dict[str, tuple[str, ...]] = {
    "clock_load": (),
    "clock_raise": ("0",),
    "clock_compact": ("{7}",),
    "changes_load": ("1000000", "0", "[]", "500"),
    "changes_window": ("1000000", "0", "500"),
    "arrivals_load": (),
    "admission_lock": (),
    "arrivals_update": ("{1}",),
    "service_clock_load": (),
    "service_clock_lock": (),
    "service_clock_update": timeline(1),
}


def test_a_long_snapshot_slows_no_look(url: str) -> None:
    """The newest version of a clock is found at once, however many a snapshot keeps.

    The control must fail: the same read without the rising key passes all versions.
    """
    with connected(url) as writer, psycopg.connect(url) as old:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT 1")
        with writer.pipeline():
            for n in range(VERSIONS):
                writer.execute(blocks("postgres")["clock_raise"].encode(), ("0",))
                writer.execute(blocks("postgres")["arrivals_update"].encode(), (f"{{{n}}}",))
                writer.execute(blocks("postgres")["service_clock_update"].encode(), timeline(n))
        for look, params in LOOKS.items():
            assert pages(writer, blocks("postgres")[look], *params) <= PAGES_MAX, look
        assert pages(writer, "SELECT epoch FROM clock") > PAGES_MAX
        assert pages(writer, "SELECT arrivals FROM admission_clock") > PAGES_MAX
        assert pages(writer, "SELECT skew FROM service_clock") > PAGES_MAX


def waiting(url: str, asking: "Future[Any]") -> None:
    """Return when a session waits for a lock."""
    with psycopg.connect(url, autocommit=True) as looking:
        while not looking.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall():
            assert not asking.done(), asking.result()


def test_a_revision_is_given_once(url: str) -> None:
    """A transaction that waited for the clock raises the committed value, not its snapshot's."""
    with connected(url) as one, connected(url) as other, ThreadPoolExecutor(1) as threads:
        with one.transaction():
            assert raised(one) == (1, 1)
            assert raised(one) == (2, 1)
            second = threads.submit(raised, other)
            waiting(url, second)
        assert second.result() == (3, 1)
        with one.transaction():
            raised(one)
            compacting = threads.submit(asked, other, "clock_compact", "{2}")
            waiting(url, compacting)
        compacting.result()
        assert asked(one, "clock_load") == [(1, 4, 2)]


def test_revisions_have_no_gaps(url: str) -> None:
    """Concurrent raises, some rolled back, give every number to exactly one transaction."""
    kept: list[int] = []

    def storm(n: int) -> None:
        with connected(url) as session:
            for turn in range(50):
                with session.transaction(force_rollback=(n + turn) % 3 == 0):
                    revision, _ = raised(session)
                if (n + turn) % 3:
                    kept.append(revision)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(storm, range(6)))
    assert sorted(kept) == list(range(1, len(kept) + 1))
    assert len(kept) == 200


@pytest.mark.parametrize(
    ("lock", "update", "values"),
    [
        ("admission_lock", "arrivals_update", [("{7}",), ("{8}",)]),
        ("service_clock_lock", "service_clock_update", [timeline(7), timeline(8)]),
    ],
)
def test_a_lock_returns_the_newest_row(
    url: str, lock: str, update: str, values: list[tuple[str, ...]]
) -> None:
    """A transaction that waited for the lock sees what its previous holder wrote."""
    with connected(url) as one, connected(url) as other, ThreadPoolExecutor(1) as threads:
        with one.transaction():
            assert asked(one, lock)[0][0] == 0
            for value in values:
                asked(one, update, *value)
            second = threads.submit(asked, other, lock)
            waiting(url, second)
        assert second.result()[0][0] == 8


def test_a_release_that_knows_no_rising_key(url: str) -> None:
    """A process of the previous release may run at the same time: both count the same revisions."""
    with connected(url) as new, connected(url) as old, ThreadPoolExecutor(1) as threads:
        before = "UPDATE clock SET revision = revision + 1 RETURNING revision, epoch"
        with old.transaction():
            assert old.execute(before).fetchall() == [(1, 1)]
            second = threads.submit(raised, new)
            waiting(url, second)
        assert second.result() == (2, 1)
        assert old.execute(before).fetchall() == [(3, 1)]
        assert asked(new, "clock_load") == [(1, 3, 0)]
