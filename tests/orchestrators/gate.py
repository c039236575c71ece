"""Runs that have begun wait here until the test lets them end; see `runs/bodies.py`."""

import socket
import threading
from collections import deque
from types import TracebackType
from typing import Self

ARRIVE_SECONDS = 180.0


class Gate:
    """Counts the runs that work at once. Use it as a context manager."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._changed = threading.Condition()
        self._inside: deque[socket.socket] = deque()
        self._open = True
        self.most = 0
        """How many worked at once, at most."""
        self.pids: list[int] = []
        """The processes that have come, the first one first."""

    @property
    def address(self) -> str:
        """Where runs report."""
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    def arrived(self, number: int, seconds: float = ARRIVE_SECONDS) -> None:
        """Return when this many runs are inside. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._inside) >= number, seconds):
                raise TimeoutError(f"{len(self._inside)} instead of {number} runs have begun")

    def let_go(self) -> None:
        """Let the run end that came first. It counts as ended before it knows."""
        with self._changed:
            connection = self._inside.popleft()
        connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:  # closed
                return
            with connection.makefile() as lines:
                said = lines.readline()
            with self._changed:
                if not said or not self._open:  # it was killed in between, or the test is over
                    connection.close()
                    continue
                self.pids.append(int(said))
                self._inside.append(connection)
                self.most = max(self.most, len(self._inside))
                self._changed.notify_all()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._changed:
            self._open = False
        while self._inside:
            self.let_go()
