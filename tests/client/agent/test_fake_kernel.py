"""The fake kernel that the agent's tests rely on: several processes use it at once."""

from multiprocessing import get_context
from pathlib import Path

from tests.support.fake_kernel import FakeKernel

RESIZED = 100
KILLS, LOOKS = 40, 1_000
"""Looks at a pool pass the time until a process is killed."""
POOL = ("devices", "system", "node", "node0", "hugepages", "hugepages-2048kB", "nr_hugepages")


def resized(folder: Path) -> None:
    """Resize a pool again and again, as another process."""
    kernel = FakeKernel(folder)
    for pages in range(1, RESIZED + 1):
        kernel.write(kernel.sys(*POOL), str(pages))


def test_no_process_sees_or_undoes_half_a_change(tmp_path: Path) -> None:
    """While another process resizes a pool, this one reads it and changes something else."""
    kernel = FakeKernel.made(tmp_path / "kernel")
    other = get_context("spawn").Process(target=resized, args=(tmp_path / "kernel",))
    other.start()
    seen, changes = [0], 0
    while other.is_alive():
        seen.append(kernel.pool("2MB")["nr"])
        changes += 1
        kernel.change(elsewhere=changes)
    assert other.exitcode == 0
    assert seen == sorted(seen)
    assert kernel.pool("2MB")["nr"] == RESIZED
    state = (tmp_path / "kernel" / "state.json").read_text()
    assert f'"elsewhere": {changes},' in state


def test_a_killed_process_leaves_no_half_a_change(tmp_path: Path) -> None:
    """Whatever a process did when it was killed: files and pools say the same afterwards."""
    kernel = FakeKernel.made(tmp_path / "kernel")
    for kill in range(KILLS):
        other = get_context("fork").Process(target=resized_for_ever, args=(tmp_path / "kernel",))
        other.start()
        for _ in range(LOOKS + 7 * kill):
            kernel.pool("2MB")
        other.kill()
        other.join()
        shown = FakeKernel(tmp_path / "kernel").read(kernel.sys(*POOL))
        assert int(shown) == kernel.pool("2MB")["nr"]


def resized_for_ever(folder: Path) -> None:
    """Ask again and again for more pages than there are, and for none."""
    kernel = FakeKernel(folder)
    while True:
        kernel.write(kernel.sys(*POOL), "10000")
        kernel.write(kernel.sys(*POOL), "0")
