"""The pools of huge pages: of a kernel in a folder, and of the real one where that is permitted."""

from pathlib import Path
from uuid import UUID, uuid5

import pytest

from moorage.client.agent.hugepages import HugePages, amounts_of, parts_of
from moorage.client.agent.kernel_files import KernelFiles
from tests.support.fake_kernel import FakeKernel
from tests.support.real_hugepages import real_pool

AGENT = UUID("5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55")


def test_pools_of_each_node(tmp_path: Path) -> None:
    """Each node is a part; what is eligible is its memory; pools of 1 GiB come first."""
    pages = HugePages(FakeKernel.made(tmp_path, {0: 16, 1: 8}))
    pools = pages.pools()
    assert [(pool.size.text, pool.node, pool.eligible) for pool in pools] == [
        ("1 GiB", 0, 16),
        ("1 GiB", 1, 8),
        ("2 MiB", 0, 8192),
        ("2 MiB", 1, 4096),
    ]
    numa0, numa1 = parts_of(AGENT, pools)
    assert (numa0.provider, numa0.name) == (str(uuid5(AGENT, "numa0")), "numa0")
    assert numa1.eligible == (("CUSTOM_HUGEPAGES_1GB", 8), ("CUSTOM_HUGEPAGES_2MB", 4096))
    sizes = {pool: pool.node for pool in pools}
    assert amounts_of(AGENT, sizes)[numa1.provider] == {
        "CUSTOM_HUGEPAGES_1GB": 1,
        "CUSTOM_HUGEPAGES_2MB": 1,
    }


def test_a_kernel_without_nodes_has_one_part(tmp_path: Path) -> None:
    """The pools of the system are those of node 0."""
    kernel = FakeKernel.made(tmp_path, {0: 4}, numa=False)
    pages = HugePages(kernel)
    pools = pages.pools()
    assert [(pool.size.text, pool.node, pool.eligible) for pool in pools] == [
        ("1 GiB", 0, 4),
        ("2 MiB", 0, 2048),
    ]
    assert pages.resize(pools[1], 10) == 10
    assert kernel.pool("2MB")["nr"] == 10


def test_nodes_without_pools_or_memory_have_no_parts(tmp_path: Path) -> None:
    """A node without memory has no pools, and old processors have no pages of 1 GiB."""
    FakeKernel.made(tmp_path, {0: 4, 1: 0})
    node0 = tmp_path / "sys/devices/system/node/node0/hugepages/hugepages-1048576kB"
    node0.rename(node0.with_name("hugepages-16777216kB"))
    (tmp_path / "sys/devices/system/node/possible").write_text("0-1\n")
    pools = HugePages(KernelFiles(str(tmp_path / "sys"), str(tmp_path / "proc"))).pools()
    assert [(pool.size.text, pool.node) for pool in pools] == [("2 MiB", 0)]


def test_no_pools_at_all(tmp_path: Path) -> None:
    """A kernel without huge pages has no pools; one without a memory size is refused."""
    kernel = KernelFiles(str(tmp_path / "sys"), str(tmp_path / "proc"))
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:   4096 kB\n")
    assert HugePages(kernel).pools() == ()
    (tmp_path / "proc/meminfo").write_text("nonsense\n")
    with pytest.raises(ValueError, match="has no MemTotal"):
        HugePages(kernel).pools()


def test_what_was_obtained_is_read_back(tmp_path: Path) -> None:
    """A write of 4 that obtains 2 succeeds; only reading shows it."""
    pages = HugePages(FakeKernel.made(tmp_path, contiguous=2))
    assert pages.resize(pages.pools()[0], 4) == 2


def test_pages_in_use_become_surplus(tmp_path: Path) -> None:
    """Shrinking below what guests use is accepted at once, and carried out as they end."""
    kernel = FakeKernel.made(tmp_path)
    pages = HugePages(kernel)
    pool = pages.pools()[1]
    assert pages.resize(pool, 32) == 32
    kernel.use("2MB", 32)
    assert pages.resize(pool, 8) == 8
    assert kernel.pool("2MB") == {"nr": 32, "surplus": 24, "used": 32}
    assert pages.actual(pool) == 8
    kernel.use("2MB", 0)
    assert kernel.pool("2MB") == {"nr": 8, "surplus": 0, "used": 0}
    assert pages.actual(pool) == 8


def test_the_real_kernel_grants_pages() -> None:
    """64 pages of 2 MiB are granted, shown, and given back."""
    pages = HugePages(KernelFiles())
    with real_pool() as pool:
        assert pages.resize(pool, 64) == pages.actual(pool) == 64
        assert pages.resize(pool, 0) == 0
