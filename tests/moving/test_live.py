"""The original is written to while it is copied; when its writers stop, nothing is missing."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.e2e.support.server import serve
from tests.moving.support import engines
from tests.moving.support.commands import Importing
from tests.moving.support.generator import Generated, fill
from tests.moving.support.original import Asking, Original

CLIENTS = 8


class Writer:
    """One client, which allocates, moves and deletes its own consumers until it is stopped."""

    def __init__(self, url: str, made: Generated, number: int) -> None:
        self._ask = Asking(url)
        self._made = made
        self._random = random.Random(number)
        self._number = number
        self.known: dict[str, tuple[int, dict[str, Any]] | None] = {}
        """By consumer, its generation and allocations by the newest acknowledged write."""
        self.acknowledged = 0

    def write(self) -> None:
        """Send one request; take note of it if it is acknowledged."""
        if self._random.random() < 0.4 or not self.known:
            uuid = f"00000000-0000-4000-8{self._number:03x}-{len(self.known):012x}"
        else:
            uuid = self._random.choice(sorted(self.known))
        before = self.known.get(uuid)
        root = self._random.choice(self._made.homes)[0]
        gone = before is not None and self._random.random() < 0.3
        allocations = {} if gone else {root: {"resources": {"VCPU": 1, "MEMORY_MB": 32}}}
        body = {
            "allocations": allocations,
            "project_id": "p",
            "user_id": "u",
            "consumer_type": "INSTANCE",
            "consumer_generation": None if before is None else before[0],
        }
        status, _ = self._ask("PUT", f"/allocations/{uuid}", body)
        if status == 204:
            self.acknowledged += 1
            generation = 1 if before is None else before[0] + 1
            self.known[uuid] = None if gone else (generation, allocations)
        else:
            # A conflict of writers, or a full provider; a consumer may be left behind all the same.
            assert status == 409, status
            self._reread(uuid)

    def _reread(self, uuid: str) -> None:
        shown = self._ask.get(f"/allocations/{uuid}")
        if shown["allocations"]:
            held = {
                key: {"resources": one["resources"]} for key, one in shown["allocations"].items()
            }
            self.known[uuid] = shown["consumer_generation"], held
        elif uuid in self.known:
            self.known[uuid] = None


def test_no_acknowledged_write_is_missing(tmp_path: Path) -> None:
    """Eight clients write during the copy and two follows; a finish while they do is refused."""
    database = engines.fresh("mariadb", tmp_path)
    with (
        Original(database) as original,
        serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server,
    ):
        made = fill(original.url, 3, 60, 200)
        writers = [Writer(original.url, made, number) for number in range(CLIENTS)]
        stop = threading.Event()

        def until_stopped(writer: Writer) -> None:
            while not stop.is_set():
                writer.write()

        command = Importing(tmp_path, database, server.url)
        with ThreadPoolExecutor(CLIENTS) as pool:
            working = [pool.submit(until_stopped, writer) for writer in writers]
            try:
                command.run("--copy", "--leave-out", "consumer_empty")
                for _ in range(2):
                    command.run("--follow", "--leave-out", "consumer_empty")
                refused = command.run("--finish", "--leave-out", "consumer_empty", code=4)
                assert "the original still changes" in refused
            finally:
                stop.set()
            for one in working:
                one.result()
        told = command.run("--finish", "--leave-out", "consumer_empty")
        assert "the ledger is open" in told
        assert all(writer.acknowledged > 5 for writer in writers)
        ours = Asking(server.url)
        for writer in writers:
            for uuid, known in writer.known.items():
                shown = ours.get(f"/allocations/{uuid}")
                if known is None:
                    assert shown == {"allocations": {}}
                    continue
                held = {
                    key: {"resources": one["resources"]}
                    for key, one in shown["allocations"].items()
                }
                assert (shown["consumer_generation"], held) == known
