"""The pools of huge pages of the machine that runs the tests, for one test at a time."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moorage.client.agent.hugepages import HugePages, Pool
from moorage.client.agent.kernel_files import KernelFiles
from moorage.client.run.locks import locked_file

LOCK = Path(tempfile.gettempdir()) / "moorage-tests-hugepages.lock"


@contextmanager
def real_pool() -> Iterator[Pool]:
    """Provide the empty pool with pages of 2 MiB; it is empty again afterwards.

    Skips the test where that is not permitted, or where huge pages are used for something else.
    """
    pages = HugePages(KernelFiles())
    pools = pages.pools()
    if os.geteuid() != 0 or [pool.size.kilobytes for pool in pools] != [1048576, 2048]:
        pytest.skip("needs root, one NUMA node, and huge pages of 1 GiB and 2 MiB")
    with locked_file(str(LOCK)):  # workers of the same run share the machine
        if any(pages.actual(pool) for pool in pools):
            pytest.skip("the huge pages of this machine are in use")
        try:
            pages.resize(pools[1], 0)
        except OSError as error:
            pytest.skip(f"the pools cannot be resized here: {error}")
        try:
            yield pools[1]
        finally:
            assert pages.resize(pools[1], 0) == 0
