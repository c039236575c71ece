"""A proxy that answers with what a server says, but keeps streams of events to itself."""

import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

EVENTS = "text/event-stream"
HOP = frozenset({"connection", "transfer-encoding", "keep-alive", "content-length"})


class BufferingProxy:
    """The proxy. `buffers`: whether it keeps streams to itself, as of now."""

    def __init__(self, server: str) -> None:
        self.buffers = True
        self._server = urlsplit(server).netloc
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                proxy.pass_on(self)

            def do_POST(self) -> None:
                proxy.pass_on(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def pass_on(self, request: BaseHTTPRequestHandler) -> None:
        """Ask the server, and answer with what it says."""
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        streams = EVENTS in request.headers.get("Accept", "")
        connection = HTTPConnection(self._server)
        try:
            headers = {n: v for n, v in request.headers.items() if n.lower() not in HOP}
            connection.request(request.command, request.path, body or None, headers)
            answer = connection.getresponse()
            request.close_connection = True
            if streams and self.buffers:
                answer.read()  # until it ends, which it does not
                return
            request.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP:
                    request.send_header(name, value)
            request.send_header("Connection", "close")
            request.end_headers()
            while piece := answer.read1(65_536):
                request.wfile.write(piece)
                request.wfile.flush()
        except OSError:
            pass  # one of both is gone
        finally:
            connection.close()

    def __enter__(self) -> "BufferingProxy":
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
