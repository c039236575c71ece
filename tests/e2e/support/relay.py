"""A relay before a real server, for faults that a real server cannot be made to have.

Standard library only: other environments use it.
"""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

CHUNK = 65536


class Relay:
    """Forwards connections to a server, and loses or changes answers on request.

    `lose` is how many of the next answers never arrive, although the server has answered; `stall`
    the same with a connection that stays open. `lost_answers`, `torn_answers` and `lost_requests`
    are numbers of requests, counted from 1, whose answer is lost, breaks off after its head, or
    that never arrive. `spoil` is a word of the answers and its replacement, of the same length;
    `spoilt` counts the replacements. `url` is the address of the relay. `tried` counts connections,
    `heard` are the first lines of all forwarded requests.
    """

    def __init__(self, url: str) -> None:
        self.lose = 0
        self.stall = 0
        self.lost_answers: set[int] = set()
        self.torn_answers: set[int] = set()
        self.lost_requests: set[int] = set()
        self.spoil: tuple[bytes, bytes] | None = None
        self.spoilt = 0
        self.tried = 0
        self.heard: list[str] = []
        self._open: set[socket.socket] = set()
        self.aim(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def aim(self, url: str) -> None:
        """Forward further connections to another server."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._target = (parts.hostname, parts.port)

    def cut(self) -> None:
        """Cut the network: end every connection, and refuse new ones."""
        self.aim("http://127.0.0.1:1")
        for client in [*self._open]:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.tried += 1
            threading.Thread(target=self._serve, args=(client, self.tried), daemon=True).start()

    def _serve(self, client: socket.socket, number: int) -> None:
        """Forward one request of a connection that is used once, as our clients do."""
        self._open.add(client)
        with client:
            with suppress(OSError):  # the server is gone
                if number not in self.lost_requests:
                    self._carry(client, number)
            # Its other thread may be blocked in a read, which keeps a closed connection open.
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        self._open.discard(client)

    def _carry(self, client: socket.socket, number: int) -> None:
        with socket.create_connection(self._target) as server:
            ends = threading.Thread(target=self._upwards, args=(client, server))
            ends.start()
            answer = server.recv(CHUNK)
            if answer and self.stall > 0:
                self.stall -= 1
                ends.join()
            elif answer and number in self.torn_answers:
                head, end, _ = answer.partition(b"\r\n\r\n")
                client.sendall(head + end)
            elif answer and (self.lose > 0 or number in self.lost_answers):
                self.lose = max(0, self.lose - 1)
            else:
                while answer:
                    client.sendall(self._spoiled(answer))
                    answer = server.recv(CHUNK)

    def _spoiled(self, answer: bytes) -> bytes:
        """Replace the word; our server sends each answer at once, so it is never split."""
        if self.spoil is None:
            return answer
        word, instead = self.spoil
        self.spoilt += answer.count(word)
        return answer.replace(word, instead)

    def _upwards(self, client: socket.socket, server: socket.socket) -> None:
        """Forward the client's bytes; when it closes, close the server's side, too."""
        try:
            data = client.recv(CHUNK)
            self.heard.append(data.split(b"\r\n", 1)[0].decode())
            while data:
                server.sendall(data)
                data = client.recv(CHUNK)
            server.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
