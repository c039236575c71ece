"""A kernel with pools of huge pages, below a folder, that behaves as Linux does.

Its state is in the folder, so that a process that starts again finds the pools as they were.
Several processes may use it at once, and one may be killed at any time: changes take turns, the
state is replaced as a whole, and the next reader completes the files that show it.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from moorage.client.agent.kernel_files import KernelFiles

KB_OF = {"1GB": 1048576, "2MB": 2048}


class FakeKernel(KernelFiles):
    """Grants pages while there is memory, and only as many of 1 GiB as are contiguous."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder / "sys"), str(folder / "proc"))
        self._folder = folder
        self.writes: list[tuple[str, str]] = []
        """What this process has written: file names below the folder, and texts."""

    @classmethod
    def made(
        cls,
        folder: Path,
        nodes: dict[int, int] | None = None,
        *,
        contiguous: int = 1000,
        compacted: int = 1000,
        numa: bool = True,
    ) -> "FakeKernel":
        """Create a machine.

        Args:
            folder: an empty one.
            nodes: the memory of each node in GiB; by default one node with 16.
            contiguous: how many pages of 1 GiB each node can grant now.
            compacted: the same after memory was compacted.
            numa: whether the kernel shows nodes.
        """
        made = cls(folder)
        state = {
            str(node): {
                "kb": gib << 20,
                "contiguous": contiguous,
                "compacted": compacted,
                "elsewhere": 0,
                "pools": {size: {"nr": 0, "surplus": 0, "used": 0} for size in KB_OF},
            }
            for node, gib in (nodes or {0: 16}).items()
        }
        folder.mkdir(parents=True, exist_ok=True)
        shown = {"numa": numa, "read_only": False, "compactions": 0, "changes": 0}
        made._store({**shown, "nodes": state})
        made.boot()
        return made

    def boot(self) -> str:
        """Boot: all pools are empty, and the boot has another id, which is returned."""
        with self._changing() as state:
            for node in state["nodes"].values():
                node["pools"] = {size: {"nr": 0, "surplus": 0, "used": 0} for size in KB_OF}
        boot_id = str(uuid4())
        self._put("proc/sys/kernel/random/boot_id", boot_id)
        return boot_id

    def pool(self, size: str, node: int = 0) -> dict[str, int]:
        """Return the pages of a pool: nr, surplus and used."""
        found: dict[str, int] = self._state["nodes"][str(node)]["pools"][size]
        return found

    def use(self, size: str, pages: int, node: int = 0) -> None:
        """Make guests use this many pages; surplus pages that become free are gone."""
        with self._changing() as state:
            pool = state["nodes"][str(node)]["pools"][size]
            assert pages <= pool["nr"]
            pool["used"] = pages
            gone = min(pool["surplus"], pool["nr"] - pages)
            pool["nr"] -= gone
            pool["surplus"] -= gone

    def change(self, **changed: Any) -> None:
        """Change `read_only`, or `contiguous`, `compacted`, `kb` and `elsewhere` of all nodes.

        `elsewhere` is memory in kilobytes that is used for something else.
        """
        with self._changing() as state:
            for name, value in changed.items():
                if name in state:
                    state[name] = value
                for node in state["nodes"].values():
                    if name in node:
                        node[name] = value

    @property
    def compactions(self) -> int:
        """How often memory was compacted."""
        return int(self._state["compactions"])

    def read(self, path: str) -> str:
        """See `KernelFiles.read`: no read sees half a change."""
        with self._locked():
            if not self._is_shown():
                self._show(self._state)
            return super().read(path)

    def write(self, path: str, text: str) -> None:
        """See `KernelFiles.write`: the kernel reacts before the call returns."""
        name = str(Path(path).relative_to(self._folder))
        self.writes.append((name, text.strip()))
        with self._changing() as state:
            if state["read_only"]:
                raise PermissionError(1, "Operation not permitted", path)
            os.stat(path)
            if name == "proc/sys/vm/compact_memory":
                state["compactions"] += 1
                for node in state["nodes"].values():
                    node["contiguous"] = node["compacted"]
                return
            parts = Path(name).parts
            assert parts[-1] == "nr_hugepages"
            node = parts[-4].removeprefix("node") if state["numa"] else "0"
            size = {f"hugepages-{kb}kB": size for size, kb in KB_OF.items()}[parts[-2]]
            _resize(state["nodes"][node], size, int(text))

    @property
    def _state(self) -> Any:
        return json.loads((self._folder / "state.json").read_text())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _changing(self) -> Iterator[Any]:
        """Provide the state, and store it unless the block raises."""
        with self._locked():
            state = self._state
            yield state
            self._store(state)

    def _store(self, state: Any) -> None:
        state["changes"] += 1
        self._put("state.json", json.dumps(state))
        self._show(state)

    def _is_shown(self) -> bool:
        """Return whether the files show the state: a process may have been killed in between."""
        return (self._folder / "shown").read_text() == str(self._state["changes"])

    def _show(self, state: Any) -> None:
        """Show the state as the kernel does."""
        self._put("proc/sys/vm/compact_memory", "")
        total = sum(node["kb"] for node in state["nodes"].values())
        self._put("proc/meminfo", f"MemTotal:       {total} kB\nMemFree: 1 kB\n")
        for number, node in state["nodes"].items():
            folder = "sys/kernel/mm/hugepages"
            if state["numa"]:
                folder = f"sys/devices/system/node/node{number}/hugepages"
                meminfo = f"Node {number} MemTotal:  {node['kb']} kB\nNode {number} MemFree: 1 kB\n"
                self._put(f"sys/devices/system/node/node{number}/meminfo", meminfo)
            for size, pool in node["pools"].items():
                where = f"{folder}/hugepages-{KB_OF[size]}kB"
                self._put(f"{where}/nr_hugepages", f"{pool['nr']}\n")
                self._put(f"{where}/surplus_hugepages", f"{pool['surplus']}\n")
                self._put(f"{where}/free_hugepages", f"{pool['nr'] - pool['used']}\n")
        self._put("shown", str(state["changes"]))

    def _put(self, name: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.new")
        new.write_text(text)
        new.replace(path)


def _resize(node: dict[str, Any], size: str, pages: int) -> None:
    """Resize a pool as `set_max_huge_pages` in mm/hugetlb.c does."""
    pool = node["pools"][size]
    persistent = pool["nr"] - pool["surplus"]
    if pages <= persistent:
        kept = max(pages, min(pool["used"], persistent))
        pool["nr"] -= persistent - kept
        pool["surplus"] += kept - pages
        return
    revived = min(pool["surplus"], pages - persistent)
    pool["surplus"] -= revived
    taken = sum(KB_OF[name] * other["nr"] for name, other in node["pools"].items())
    room = (node["kb"] - node["elsewhere"] - taken) // KB_OF[size]
    if size == "1GB":
        room = min(room, node["contiguous"] - pool["nr"])
    pool["nr"] += max(0, min(room, pages - persistent - revived))
