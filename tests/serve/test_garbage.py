"""Randomly damaged requests: every answer is well-formed, and the server continues."""

import contextlib
import random
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.support.server import serve
from tests.serve.wire import LATEST, Answer, answers, connect, read_to_end, request, talk

CASES = 2_000
CLIENTS = 32
SEED = 20261120
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
JSON = b"Content-Type: application/json\r\n"
CHUNKS = b'7\r\n{"name"\r\n8;x=y\r\n: "host"\r\n1\r\n}\r\n0\r\nA: b\r\n\r\n'
WHOLE = [
    request(b"GET", b"/resource_providers?name=a%20b", close=False),
    request(
        b"POST", b"/resource_providers", JSON, b"Content-Length: 16\r\n", body=b'{"name": "host"}'
    ),
    request(b"POST", b"/resource_providers", JSON, b"Transfer-Encoding: chunked\r\n", body=CHUNKS),
    request(b"DELETE", b"/traits/CUSTOM_X", b"Content-Length: hi mom\r\n", close=False),
    request(b"PUT", b"/v1/tokens", b"Expect: 100-continue\r\nContent-Length: 0\r\n", close=False),
    b"GET / HTTP/1.0\r\n" + LATEST + b"Connection: keep-alive\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
]
PIECES = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b":",
    b"\xff",
    b"chunked",
    b"Content-Length: 3\r\n",
    b"0",
]


def damaged(chance: random.Random) -> bytes:
    """One or two requests with a few bytes removed, repeated, replaced or inserted."""
    sent = bytearray(
        chance.choice(WHOLE) + (chance.choice(WHOLE) if chance.random() < 0.3 else b"")
    )
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(sent))
        end = at + chance.randint(0, 6)
        sent[at:end] = chance.choice([b"", sent[at:end] * 2, *PIECES])
    return bytes(sent)


def exchange(url: str, sent: bytes, cut: int) -> list[Answer]:
    """Send a request in two packets; return every answer until the server closes."""
    with connect(url) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(ConnectionError):
            connection.sendall(sent[:cut])
            connection.sendall(sent[cut:])
        return answers(read_to_end(connection).replace(CONTINUE, b""))


def test_damaged_requests_do_no_harm(tmp_path: Path) -> None:
    """No damage makes the server fail, stop answering, or log a traceback."""
    chance = random.Random(SEED)
    cases = [damaged(chance) for _ in range(CASES)]
    cuts = [chance.randrange(len(sent) + 1) for sent in cases]
    bounds = ["--header-seconds-max", "0.2", "--body-seconds-max", "0.2"]
    bounds += ["--idle-seconds-max", "0.2", "--allowed-hosts", "*"]
    with serve(tmp_path / "moorage.sqlite", "--auth", "noauth2", *bounds) as server:
        with ThreadPoolExecutor(CLIENTS) as threads:
            told = list(threads.map(exchange, [server.url] * CASES, cases, cuts))
        for sent, found in zip(cases, told, strict=True):
            for answer in found:
                assert answer.status < 500 or answer.status == 505, (sent, answer)
        assert {answer.status for found in told for answer in found} >= {200, 400, 401, 404, 408}
        assert talk(server.url, request(b"GET", b"/healthz"))[0].status == 200
        assert server.stop() == 0
        assert [line for line in server.said if "Traceback" in line or "ERROR" in line] == []
