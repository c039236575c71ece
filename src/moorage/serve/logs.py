"""Log lines: for people (`line`) or for programs (`json`), on standard error.

`AccessLog` logs requests: it collects lines and writes them together, because a system call for
each line would cost more than answering the request.
"""

import asyncio
import json
import logging
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal

from moorage.client.run.printing import printable, printable_json
from moorage.faces.addresses import client_of
from moorage.faces.web import ANSWERED, CALLER, REQUEST_ID, Scope
from moorage.serve.log_writer import LogWriter, WriterHandler, standard_error

ACCESS_DELAY_SECONDS = 0.05
"""How long a line of the access log may wait for others."""

Format = Literal["line", "json"]


def time_text(seconds: float) -> str:
    """Return an instant for log lines: RFC 3339, UTC, with milliseconds."""
    milliseconds = int(seconds * 1_000)
    return f"{_second_text(milliseconds // 1_000)}.{milliseconds % 1_000:03d}Z"


@lru_cache(maxsize=4)
def _second_text(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()[:-6]


class LineFormatter(logging.Formatter):
    """`TIME LEVEL LOGGER: MESSAGE`, tracebacks on the lines below."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - logging's name
        """Return the record's time."""
        return time_text(record.created)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return exactly one line, whatever the message contains."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """Return a traceback, which may have several lines."""
        return "\n".join(map(printable, super().formatException(ei).split("\n")))


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and a traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        shown: dict[str, Any] = {
            "time": time_text(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            shown["traceback"] = self.formatException(record.exc_info)
        return printable_json(json.dumps(shown, ensure_ascii=False))


def configure(form: Format, level: str) -> None:
    """Send all logs of this process to standard error in one format."""
    handler = WriterHandler(standard_error())
    handler.setFormatter(JsonFormatter() if form == "json" else LineFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    # The audit log is written at any level.
    logging.getLogger("moorage.audit").setLevel(logging.INFO)
    # uvicorn's startup messages at info repeat the ready line.
    logging.getLogger("uvicorn.error").setLevel(max(logging.WARNING, logging.root.level))


class AccessLog:
    """Writes one line per request, several lines at a time."""

    def __init__(self, form: Format, writer: LogWriter) -> None:
        self._json = form == "json"
        self._writer = writer
        self._lines: list[str] = []

    def write(self, scope: Scope, status: int, seconds: float) -> None:
        """Log one request, within `ACCESS_DELAY_SECONDS`.

        Args:
            scope: of the request.
            status: of the answer; 0: there is none.
            seconds: from its beginning to the end of the answer.
        """
        if not self._lines:
            asyncio.get_running_loop().call_later(ACCESS_DELAY_SECONDS, self.flush)
        request_id = caller = "-"
        if ANSWERED in scope:
            for name, value in scope[ANSWERED][1]:
                if name == REQUEST_ID:
                    request_id = str(value, "latin-1")
        if CALLER in scope:
            caller = scope[CALLER].label
        at = time_text(time.time())  # noqa: TID251 - log lines have the machine's own time
        client = client_of(scope) or "-"
        method, query = scope["method"], scope["query_string"]
        target = str(scope["raw_path"] + b"?" + query if query else scope["raw_path"], "latin-1")
        if not self._json:
            self._lines.append(
                f"{at} INFO moorage.access: {request_id} {client} {caller} "
                f'"{method} {printable(target)}" {status} {seconds * 1_000:.1f}ms'
            )
            return
        shown = {
            "level": "info",
            "logger": "moorage.access",
            "time": at,
            "request_id": request_id,
            "client": client,
            "caller": caller,
            "method": method,
            "target": target,
            "status": status,
            "milliseconds": round(seconds * 1_000, 3),
        }
        self._lines.append(json.dumps(shown))

    def flush(self) -> None:
        """Write the collected lines."""
        if self._lines:
            lines, self._lines = self._lines, []
            self._writer.write("\n".join(lines) + "\n")
