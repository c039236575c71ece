"""Writes the log in a thread of its own, so that a slow or stuck reader holds up no request.

A terminal stops reading at Ctrl-S, a pipe when its reader hangs. Lines beyond the memory for unread
lines are dropped, and counted in the next line that can be written.
"""

import logging
import sys
import threading
from contextlib import suppress
from functools import cache
from typing import TextIO

UNREAD_CHARACTERS_MAX = 4 << 20
"""Characters of the log that wait to be written; more are lost."""

END_SECONDS = 2.0
"""How long the end of the process waits for the rest of the log."""

log = logging.getLogger("moorage.logs")


class LogWriter:
    """Writes text to a stream, in order. The thread starts with the first text."""

    def __init__(self, stream: TextIO | None = None, most: int = UNREAD_CHARACTERS_MAX) -> None:
        """Create it; `stream`: None, standard error as it is when text is written."""
        self._stream = stream
        self._most = most
        self._changed = threading.Condition()
        self._waiting: list[str] = []
        self._size = 0
        """Characters that are not written yet."""
        self._lost = 0
        """Lines that did not fit since the last that did."""
        self._thread: threading.Thread | None = None

    def write(self, text: str) -> None:
        """Write whole lines soon; they are lost if too much is unread."""
        with self._changed:
            if self._size + len(text) > self._most:
                self._lost += text.count("\n")
                return
            self._waiting.append(text)
            self._size += len(text)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, seconds: float = END_SECONDS) -> None:
        """Wait until everything is written, but not for longer than this."""
        with self._changed:
            self._changed.wait_for(lambda: not self._size, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                text = "".join(self._waiting)
                self._waiting = []
            with suppress(OSError, ValueError):  # a closed log is no reason to stop serving
                stream = self._stream or sys.stderr
                stream.write(text)
                stream.flush()
            with self._changed:
                self._size -= len(text)
                lost, self._lost = self._lost, 0
                self._changed.notify_all()
            if lost:
                log.warning("%d lines were lost, because nobody read the log", lost)


@cache
def standard_error() -> LogWriter:
    """Return the only writer of standard error."""
    return LogWriter()


class WriterHandler(logging.Handler):
    """Passes log records to a writer."""

    def __init__(self, writer: LogWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            self._writer.write(self.format(record) + "\n")
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Wait for what is written; `logging.shutdown` calls it at the end of the process."""
        self._writer.flush()
