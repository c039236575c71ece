"""A server that gives the answers of `answers`, and commands on a real terminal that ask it."""

import json
import os
import pty
import select
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from moorage.wire.dataclass import members
from tests.cli.command import SECONDS
from tests.cli.pooled import SIZE
from tests.cli.tables.answers import answer_to
from tests.cli.tables.building import NOW
from tests.cli.tables.driver import END


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer as the server does; the `Date` is always the same."""
        parts = urlsplit(self.path)
        asked = parse_qs(parts.query)
        body = answer_to(
            unquote(parts.path), asked.get("state", [None])[0], asked.get("by", ["class"])[0]
        )
        self.send_response_only(404 if body is None else 200)
        text = msgspec.json.encode(members(body))
        self.send_header("Date", format_datetime(NOW, usegmt=True))
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@contextmanager
def answering() -> Iterator[str]:
    """Yield the address of the server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def on_terminal(
    url: str,
    commands: Sequence[tuple[int, Sequence[str]]],
    *more: str,
    **environment: str,
) -> list[str]:
    """Run commands on terminals of these widths; return what each prints. `more`: see `driver`."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in SIZE and not name.startswith("MOORAGE_")
    }
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "tests.cli.tables.driver", json.dumps(commands), *more],
        env={
            **inherited,
            "TERM": "xterm",
            "MOORAGE_URL": url,
            "MOORAGE_TOKEN": "night",
            **environment,
        },
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        seen = b""
        with suppress(OSError):  # the terminal closes with the process
            while True:
                ready, _, _ = select.select([ours], [], [], SECONDS)
                assert ready, seen
                if not (read := os.read(ours, 65_536)):
                    break
                seen += read
        os.close(ours)
        assert process.wait(SECONDS) == 0, seen.decode()
    return seen.decode().replace("\r\n", "\n").split(f"{END}\n")[:-1]
