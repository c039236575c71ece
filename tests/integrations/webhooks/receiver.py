"""A real HTTP receiver of posts, which answers as a test says, and may be gone for a while."""

import hmac
import json
import threading
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

SECONDS = 60.0


class Received(NamedTuple):
    """A post as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        """The JSON of its body."""
        return json.loads(self.body)

    @property
    def id(self) -> str:
        """The same for each try."""
        return self.headers["webhook-id"]

    def signed(self, secret: bytes) -> str:
        """Return what its signature must be, computed here from what the specification says."""
        text = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        return f"v1,{b64encode(hmac.new(secret, text, 'sha256').digest()).decode()}"


class Receiver:
    """Listens on a port; use it as a context manager. `answer` is called for each post.

    It returns the status; 0: the connection is closed without an answer.
    """

    def __init__(self, port: int = 0, answer: Callable[[Received], int] = lambda _: 200) -> None:
        self._changed = threading.Condition()
        self.posts: list[Received] = []
        self.answer = answer
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def _take(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                names = {name.lower(): value for name, value in self.headers.items()}
                received = Received(self.command, self.path, names, body)
                status = receiver.answer(received)
                receiver.note(received)
                if not status:
                    self.close_connection = True
                    return
                with suppress(OSError):  # who has posted is gone
                    self.send_response(status)
                    self.send_header("content-length", "0")
                    if status in range(300, 400):
                        self.send_header("location", "/elsewhere")
                    self.end_headers()

            do_POST = do_PUT = _take  # noqa: N815 # as http.server calls them

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        ThreadingHTTPServer.allow_reuse_address = True
        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def note(self, received: Received) -> None:
        """Remember a post, and wake who waits for it."""
        with self._changed:
            self.posts.append(received)
            self._changed.notify_all()

    def arrived(self, number: int, seconds: float = SECONDS) -> list[Received]:
        """Return all posts when there are this many. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.posts) >= number, seconds):
                raise TimeoutError(f"{len(self.posts)} instead of {number} posts: {self.posts}")
            return [*self.posts]

    def close(self) -> None:
        """Be gone: connections are refused."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
