"""The fake kernel that the agent's tests rely on: several processes use it at once."""

from multiprocessing import get_context
from pathlib import Path

from tests.support.fake_kernel import FakeKernel

RESIZED = 100


def resized(folder: Path) -> None:
    """Resize a pool again and again, as another process."""
    kernel = FakeKernel(folder)
    for pages in range(1, RESIZED + 1):
        path = kernel.sys("devices", "system", "node", "node0", "hugepages", "hugepages-2048kB")
        kernel.write(f"{path}/nr_hugepages", str(pages))


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
