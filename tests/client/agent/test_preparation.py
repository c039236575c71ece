"""The work towards desired pools: steps, order, read-backs, compaction, retries, drift."""

from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.client.agent.api_types import Amounts, Observation
from moorage.client.agent.backoff import Backoff
from moorage.client.agent.hugepages import HugePages, parts_of
from moorage.client.agent.preparation import (
    POLL_SECONDS,
    REFUSED,
    SHORT,
    UNREADABLE,
    Goal,
    Preparation,
)
from tests.support.fake_kernel import KB_OF, FakeKernel

AGENT = UUID("5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55")
SINCE = "2026-01-01T00:00:00+00:00"
NR = "sys/devices/system/node/node{}/hugepages/hugepages-{}kB/nr_hugepages"


class Work:
    """A preparation on a kernel, with a clock that is set by hand."""

    def __init__(self, kernel: FakeKernel) -> None:
        self.kernel = kernel
        self.pages = HugePages(kernel)
        self.preparation = Preparation(
            self.pages, AGENT, Backoff(4.0, 60.0, lambda low, high: high), lambda: SINCE
        )
        self.now = 0.0
        self.generation = 0
        self.desired: Amounts = {}
        self.seen: Observation | None = None

    def want(self, **pages: int) -> None:
        """Desire these numbers of pages of each node: `want(of_2MB=64)`."""
        amounts = {f"CUSTOM_HUGEPAGES_{size[3:]}": number for size, number in pages.items()}
        parts = parts_of(AGENT, self.pages.pools())
        self.desired = {part.provider: dict(amounts) for part in parts}
        self.generation += 1

    def step(self) -> float:
        """Do one step; return how long to wait for the next one."""
        goal = Goal(self.desired, self.generation) if self.generation else None
        self.seen, wait = self.preparation.step(goal, self.now)
        return wait

    def settle(self) -> list[Observation]:
        """Do steps until one waits; return what each has observed."""
        found = []
        while not (wait := self.step()):
            assert self.seen is not None
            found.append(self.seen)
        assert self.seen is not None
        assert wait <= POLL_SECONDS
        return [*found, self.seen]

    def nr_writes(self, size: str, node: int = 0) -> list[int]:
        """Return the numbers that were written to a pool."""
        name = NR.format(node, KB_OF[size])
        return [int(text) for written, text in self.kernel.writes if written == name]


def amounts(seen: Observation, name: str) -> list[int]:
    """Return the actual amounts of a class, in the order of the nodes."""
    return [seen.actual[part.provider][name] for part in seen.parts]


def test_pools_grow_by_a_gibibyte_at_a_time(tmp_path: Path) -> None:
    """Each step is 512 pages of 2 MiB, is observed, and the last one is smaller."""
    work = Work(FakeKernel.made(tmp_path))
    work.want(of_2MB=1300)
    seen = work.settle()
    assert work.nr_writes("2MB") == [512, 1024, 1300]
    assert [amounts(one, "CUSTOM_HUGEPAGES_2MB")[0] for one in seen] == [512, 1024, 1300, 1300]
    assert [one.done for one in seen] == [False, False, False, True]
    assert all(one.failure is None for one in seen)
    assert {one.desired_generation for one in seen} == {1}


def test_large_pages_come_first(tmp_path: Path) -> None:
    """Pages of 1 GiB need contiguous memory, so all nodes get theirs before pages of 2 MiB."""
    work = Work(FakeKernel.made(tmp_path, {0: 4, 1: 4}))
    work.want(of_1GB=2, of_2MB=4)
    work.settle()
    order = [name.split("/")[4] + name.split("-")[1][:4] for name, _ in work.kernel.writes]
    assert order == ["node01048", "node01048", "node11048", "node11048", "node02048", "node12048"]


def test_shrinking_frees_memory_for_growing(tmp_path: Path) -> None:
    """What is too large shrinks first, otherwise other pools would find no memory."""
    work = Work(FakeKernel.made(tmp_path, {0: 2}))
    work.want(of_2MB=1024)
    work.settle()
    work.want(of_2MB=0, of_1GB=2)
    seen = work.settle()[-1]
    assert amounts(seen, "CUSTOM_HUGEPAGES_1GB") == [2]
    assert seen.failure is None
    assert work.nr_writes("2MB") == [512, 1024, 0]


def test_without_orders_nothing_is_written(tmp_path: Path) -> None:
    """Before it knows what is desired, the agent only reads; so it does with a class without."""
    work = Work(FakeKernel.made(tmp_path))
    work.pages.resize(work.pages.pools()[1], 64)
    work.kernel.writes.clear()
    assert work.step() == POLL_SECONDS
    assert work.seen is not None
    assert (work.seen.desired_generation, work.seen.done) == (None, False)
    assert amounts(work.seen, "CUSTOM_HUGEPAGES_2MB") == [64]
    work.want(of_1GB=0)
    assert work.settle()[-1].done
    assert work.kernel.writes == []


def test_the_failure_names_what_is_there_now(tmp_path: Path) -> None:
    """Pages that come or go between two passes are in the message as in the amounts."""
    kernel = FakeKernel.made(tmp_path, {0: 2})
    kernel.change(elsewhere=1 << 20)
    work = Work(kernel)
    work.want(of_2MB=1024)
    first = work.settle()[-1].failure
    assert first is not None
    assert first.message == "node 0 has 512 of 1024 pages of 2 MiB"
    work.pages.resize(work.pages.pools()[1], 100)
    assert work.step() > 0
    assert work.seen is not None
    assert amounts(work.seen, "CUSTOM_HUGEPAGES_2MB") == [100]
    assert work.seen.failure == first._replace(message="node 0 has 100 of 1024 pages of 2 MiB")


def test_an_agent_that_starts_again_does_not_write(tmp_path: Path) -> None:
    """In the same boot the pools are as they were: the first pass is over without a write."""
    Work(FakeKernel.made(tmp_path)).pages.resize(HugePages(FakeKernel(tmp_path)).pools()[1], 64)
    work = Work(FakeKernel(tmp_path))
    work.want(of_2MB=64, of_1GB=0)
    seen = work.settle()[-1]
    assert (seen.done, seen.failure, work.kernel.writes) == (True, None, [])


def test_a_short_pool_compacts_once(tmp_path: Path) -> None:
    """The first short result compacts memory and is repeated; that may be enough."""
    work = Work(FakeKernel.made(tmp_path, contiguous=2, compacted=4))
    work.want(of_1GB=4)
    seen = work.settle()
    assert work.kernel.compactions == 1
    assert work.nr_writes("1GB") == [1, 2, 3, 3, 4]
    assert amounts(seen[-1], "CUSTOM_HUGEPAGES_1GB") == [4]
    assert seen[-1].failure is None


def test_a_pass_that_stays_short_is_done_and_retried(tmp_path: Path) -> None:
    """It is done with what there is, says so, and tries again later, each time with more delay."""
    work = Work(FakeKernel.made(tmp_path, contiguous=2, compacted=2))
    work.want(of_1GB=4, of_2MB=8)
    seen = work.settle()[-1]
    assert seen.done
    assert amounts(seen, "CUSTOM_HUGEPAGES_2MB") == [8]
    assert seen.failure is not None
    assert seen.failure == (SHORT, "node 0 has 2 of 4 pages of 1 GiB", 1, 4.0, SINCE)
    writes = len(work.kernel.writes)
    work.now = 3.9
    work.step()
    assert (len(work.kernel.writes), work.kernel.compactions) == (writes, 1)
    delays = []
    for _ in range(6):
        work.now += 60.0
        seen = work.settle()[-1]
        assert seen.failure is not None
        assert seen.done
        delays.append((seen.failure.attempts, seen.failure.next_retry_in))
    assert delays == [(2, 8.0), (3, 16.0), (4, 32.0), (5, 60.0), (6, 60.0), (7, 60.0)]
    assert work.kernel.compactions == 7
    work.kernel.change(compacted=4)
    work.now += 60.0
    assert work.settle()[-1].failure is None
    assert work.kernel.pool("1GB")["nr"] == 4


def test_a_kernel_that_refuses_is_reported(tmp_path: Path) -> None:
    """A refused write is a failure with the reason; the pools of other sizes are still tried."""
    work = Work(FakeKernel.made(tmp_path))
    work.kernel.change(read_only=True)
    work.want(of_1GB=1, of_2MB=8)
    seen = work.settle()[-1]
    assert seen.failure is not None
    assert seen.failure.code == REFUSED
    assert "node 0 has 0 of 8 pages of 2 MiB; node 0: [Errno 1]" in seen.failure.message
    assert (len(work.nr_writes("1GB")), len(work.nr_writes("2MB"))) == (1, 1)
    work.kernel.change(read_only=False)
    work.now += 4.0
    assert work.settle()[-1].failure is None


def test_a_kernel_that_cannot_compact_is_reported(tmp_path: Path) -> None:
    """Compaction may not be built into the kernel; the message says so, and work continues."""
    work = Work(FakeKernel.made(tmp_path, contiguous=0))
    work.want(of_1GB=1, of_2MB=8)
    work.kernel.proc = lambda *parts: str(tmp_path / "nowhere" / "file")  # type: ignore[method-assign] # no such file
    seen = work.settle()[-1]
    assert seen.failure is not None
    assert seen.failure.code == SHORT
    assert "memory cannot be compacted" in seen.failure.message
    assert amounts(seen, "CUSTOM_HUGEPAGES_2MB") == [8]


def test_pools_that_somebody_else_changes(tmp_path: Path) -> None:
    """A later look notices it, reports it, and works again; the phase stays done."""
    work = Work(FakeKernel.made(tmp_path))
    work.want(of_2MB=600)
    work.settle()
    work.pages.resize(work.pages.pools()[1], 10)
    seen = work.settle()
    assert [amounts(one, "CUSTOM_HUGEPAGES_2MB")[0] for one in seen] == [522, 600, 600]
    assert all(one.done for one in seen)


def test_pools_that_cannot_be_read(tmp_path: Path) -> None:
    """The first time the agent cannot start; later, the last observation has a failure."""
    work = Work(FakeKernel.made(tmp_path))
    work.want(of_2MB=8)
    work.settle()
    meminfo = tmp_path / "sys/devices/system/node/node0/meminfo"
    meminfo.rename(tmp_path / "meminfo")
    assert work.step() == 4.0
    assert work.seen is not None
    assert work.seen.failure is not None
    assert work.seen.failure.code == UNREADABLE
    assert amounts(work.seen, "CUSTOM_HUGEPAGES_2MB") == [8]
    with pytest.raises(OSError, match="meminfo"):
        Work(FakeKernel(tmp_path)).step()
    (tmp_path / "meminfo").rename(meminfo)
    assert work.settle()[-1].failure is None


def test_what_guests_use_is_not_taken_away(tmp_path: Path) -> None:
    """Shrinking is lazy: pages in use are no longer counted, and not asked for again."""
    work = Work(FakeKernel.made(tmp_path))
    work.want(of_2MB=32)
    work.settle()
    work.kernel.use("2MB", 16)
    work.want(of_2MB=4)
    assert amounts(work.settle()[-1], "CUSTOM_HUGEPAGES_2MB") == [4]
    assert work.kernel.pool("2MB") == {"nr": 16, "surplus": 12, "used": 16}
    work.kernel.use("2MB", 2)
    work.step()
    assert work.nr_writes("2MB") == [32, 4]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 2600), st.integers(0, 5), st.booleans()),
        min_size=1,
        max_size=4,
    )
)
def test_every_pass_ends_with_what_the_kernel_has(
    tmp_path_factory: pytest.TempPathFactory, orders: list[tuple[int, int, int, bool]]
) -> None:
    """After any orders and shortages: what is observed is there, nothing is above desired, a
    failure is there exactly if something is missing, and no step asks for more than 1 GiB.
    """
    work = Work(FakeKernel.made(tmp_path_factory.mktemp("kernel"), {0: 4}))
    for large, small, contiguous, guests in orders:
        work.kernel.change(contiguous=contiguous, compacted=contiguous)
        work.want(of_1GB=large, of_2MB=small)
        seen = work.settle()[-1]
        for size, wanted in (("1GB", large), ("2MB", small)):
            pool = work.kernel.pool(size)
            actual = amounts(seen, f"CUSTOM_HUGEPAGES_{size}")[0]
            assert actual == pool["nr"] - pool["surplus"] <= wanted
        missing = amounts(seen, "CUSTOM_HUGEPAGES_1GB")[0] < large
        missing |= amounts(seen, "CUSTOM_HUGEPAGES_2MB")[0] < small
        assert (seen.failure is not None) == missing
        for size in KB_OF:
            work.kernel.use(size, work.kernel.pool(size)["nr"] // 2 if guests else 0)
