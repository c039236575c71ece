"""Log lines: for people (`line`) or for programs (`json`), on standard error.

`AccessLog` logs requests: it collects lines and writes them together, because a system call for
each line would cost more than answering the request.
"""

import asyncio
import json
import logging
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal

import msgspec

from moorage.client.run.printing import printable, printable_json
from moorage.serve.log_writer import LogWriter, WriterHandler, standard_error

ACCESS_DELAY_SECONDS = 0.05
"""How long a line of the access log may wait for others."""

Format = Literal["line", "json"]


def time_text(seconds: float) -> str:
    """Return an instant for log lines: RFC 3339, UTC, with milliseconds."""
    return f"{_second_text(int(seconds))}.{int(seconds * 1_000) % 1_000:03d}Z"


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


class AccessRecord(msgspec.Struct):
    """One answered request."""

    time: str
    request_id: str
    client: str
    caller: str
    """The authenticated caller, see `faces.web.CALLER`; `-`: none."""
    method: str
    target: str
    status: int
    milliseconds: float


class AccessLog:
    """Writes one line per request, several lines at a time."""

    def __init__(self, form: Format, writer: LogWriter) -> None:
        self._json = form == "json"
        self._writer = writer
        self._lines: list[str] = []

    def write(self, access: AccessRecord) -> None:
        """Log one request, within `ACCESS_DELAY_SECONDS`."""
        if not self._lines:
            asyncio.get_running_loop().call_later(ACCESS_DELAY_SECONDS, self.flush)
        if self._json:
            shown = {"level": "info", "logger": "moorage.access", **msgspec.to_builtins(access)}
            self._lines.append(json.dumps(shown))
        else:
            target = printable(access.target)
            self._lines.append(
                f"{access.time} INFO moorage.access: {access.request_id} {access.client} "
                f"{access.caller} "
                f'"{access.method} {target}" {access.status} {access.milliseconds:.1f}ms'
            )

    def flush(self) -> None:
        """Write the collected lines."""
        if self._lines:
            lines, self._lines = self._lines, []
            self._writer.write("\n".join(lines) + "\n")
