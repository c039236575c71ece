"""Which proxy is asked: a table, compared with the real curl; and what each of ours then sends."""

import base64
import os
import random
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from moorage.client.proxies import proxy_for
from moorage.client.transport import Transport, UnreachableError
from tests.client import single

P = "http://127.0.0.1:{port}"
HTTP, HTTPS = "http://svc.example.test:8778", "https://svc.example.test"
TABLE: list[tuple[dict[str, str], str, bool]] = [
    # Which variable.
    ({}, HTTP, False),
    ({"http_proxy": P}, HTTP, True),
    ({"HTTP_PROXY": P}, HTTP, False),
    ({"HTTP_PROXY": P, "NO_PROXY": "svc"}, "http://127.0.0.1:9", False),
    ({"http_proxy": P}, HTTPS, False),
    ({"https_proxy": P}, HTTPS, True),
    ({"HTTPS_PROXY": P}, HTTPS, True),
    ({"https_proxy": P}, HTTP, False),
    ({"all_proxy": P}, HTTP, True),
    ({"ALL_PROXY": P}, HTTP, True),
    ({"ALL_PROXY": P}, HTTPS, True),
    ({"all_proxy": P, "HTTP_PROXY": "http://127.0.0.1:1"}, HTTP, True),
    ({"http_proxy": "", "all_proxy": P}, HTTP, True),
    ({"http_proxy": ""}, HTTP, False),
    ({"http_proxy": "127.0.0.1:{port}"}, HTTP, True),
    ({"http_proxy": "HTTP://u:p%40@127.0.0.1:{port}/x"}, HTTP, True),
    ({"http_proxy": P}, "http://127.0.0.1:9", True),
    ({"http_proxy": P}, "http://localhost:9", True),
    # Who is exempt.
    ({"http_proxy": P, "no_proxy": "*"}, HTTP, False),
    ({"http_proxy": P, "no_proxy": "*,x"}, HTTP, True),
    ({"http_proxy": P, "no_proxy": "*.example.test"}, HTTP, True),
    ({"http_proxy": P, "no_proxy": "svc.example.test"}, HTTP, False),
    ({"http_proxy": P, "NO_PROXY": "svc.example.test"}, HTTP, False),
    ({"http_proxy": P, "no_proxy": "x", "NO_PROXY": "svc.example.test"}, HTTP, True),
    ({"http_proxy": P, "no_proxy": "", "NO_PROXY": "svc.example.test"}, HTTP, False),
    ({"http_proxy": P, "no_proxy": "svc.example.test:8778"}, HTTP, True),
    ({"http_proxy": P, "no_proxy": "http://svc.example.test"}, HTTP, True),
    ({"http_proxy": P, "no_proxy": "example.test"}, HTTP, False),
    ({"http_proxy": P, "no_proxy": ".example.test"}, HTTP, False),
    ({"http_proxy": P, "no_proxy": ".svc.example.test"}, HTTP, False),
    ({"http_proxy": P, "no_proxy": "ample.test"}, HTTP, True),
    ({"http_proxy": P, "no_proxy": "EXAMPLE.Test."}, HTTP, False),
    ({"http_proxy": P, "no_proxy": "example.test"}, "http://SVC.Example.TEST.:8778", False),
    ({"http_proxy": P, "no_proxy": "a , example.test"}, HTTP, False),
    ({"http_proxy": P, "no_proxy": "a example.test b"}, HTTP, False),
    ({"http_proxy": P, "no_proxy": ",,a,,"}, HTTP, True),
    ({"http_proxy": P, "no_proxy": "."}, HTTP, True),
    ({"http_proxy": P, "no_proxy": "10.1.2.3"}, "http://10.1.2.3:9", False),
    ({"http_proxy": P, "no_proxy": "2.3"}, "http://10.1.2.3:9", True),
    ({"http_proxy": P, "no_proxy": "10.0.0.0/8"}, "http://10.1.2.3:9", False),
    ({"http_proxy": P, "no_proxy": "11.0.0.0/8"}, "http://10.1.2.3:9", True),
    ({"http_proxy": P, "no_proxy": "10.1.2.0/25"}, "http://10.1.2.127:9", False),
    ({"http_proxy": P, "no_proxy": "10.1.2.0/25"}, "http://10.1.2.128:9", True),
    ({"http_proxy": P, "no_proxy": "10.1.2.3/32"}, "http://10.1.2.3:9", False),
    ({"http_proxy": P, "no_proxy": "10.1.2.3/33"}, "http://10.1.2.3:9", True),
    ({"http_proxy": P, "no_proxy": "10.1.2.4/0"}, "http://10.1.2.3:9", True),
    ({"http_proxy": P, "no_proxy": "10.1.2.3/x"}, "http://10.1.2.3:9", False),
    ({"http_proxy": P, "no_proxy": "10.1.2.3."}, "http://10.1.2.3:9", True),
    ({"http_proxy": P, "no_proxy": "127.0.0.0/8"}, "http://127.1:9", False),
    ({"http_proxy": P, "no_proxy": "127.0.0.1"}, "http://0x7f000001:9", False),
    ({"http_proxy": P, "no_proxy": "127.0.0.1"}, "http://localhost:9", True),
    ({"http_proxy": P, "no_proxy": "localhost"}, "http://127.0.0.1:9", True),
    ({"http_proxy": P, "no_proxy": "10.0.0.0/8"}, "http://10.example.test:9", True),
    ({"http_proxy": P, "no_proxy": "::1"}, "http://[::1]:9", False),
    ({"http_proxy": P, "no_proxy": "0:0::1"}, "http://[::1]:9", False),
    ({"http_proxy": P, "no_proxy": "[::1]"}, "http://[::1]:9", True),
    ({"http_proxy": P, "no_proxy": "fd00::/8"}, "http://[fd12::1]:9", False),
    ({"http_proxy": P, "no_proxy": "fe00::/8"}, "http://[fd12::1]:9", True),
    ({"http_proxy": P, "no_proxy": "fd12::/129"}, "http://[fd12::]:9", True),
    ({"https_proxy": P, "no_proxy": "example.test"}, HTTPS, False),
    ({"all_proxy": P, "no_proxy": "example.test"}, HTTPS, False),
]
"""Variables, the address of a server, and whether the proxy is asked."""

NAMES = ("a.b", "B.", "x.a.b", "10.0.0.1", "10.9.0.1", "localhost", "127.0.0.1")
HOSTS = (*NAMES, "[fd00::1]", "[fe80::2]")
WORDS = (
    *("a.b", ".a.b", "b", "A.B.", "x.a.b", "*", ".", "*.b", "a.b:9", "localhost", "LOCALHOST."),
    *("10.0.0.1", "10.0.0.0/8", "10.0.0.0/16", "10.0.0.1/32", "0.0.0.0/0", "127.0.0.1/8", "/8"),
    *("fd00::1", "fd00::/16", "fd00::/8", "FD00:0::1", "::/0", "fe80::2/128", "[fe80::2]", "1"),
)
"""Of these, lists are drawn for random hosts."""

NO_CURL = "not compared with curl, which this machine does not have"


class Recording(BaseHTTPRequestHandler):
    """A proxy that answers everything itself, and remembers what it was asked for."""

    server: "Relay"

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        heads = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.command, self.path, heads))
        text = b'{"names": ["n1"]}'
        refused = {"CONNECT": 502, "POST": 403}
        released = self.path.endswith("/lease/release")
        self.send_response(200 if released else refused.get(self.command, 200))
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_CONNECT = _answer  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Relay(ThreadingHTTPServer):
    """The proxy of these tests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Recording)
        self.asked: list[tuple[str, str, dict[str, str]]] = []


@pytest.fixture
def relay() -> Iterator[Relay]:
    """A proxy that runs."""
    yield from running()


@pytest.fixture
def server() -> Iterator[Relay]:
    """A server that answers in the same way."""
    yield from running()


def running() -> Iterator[Relay]:
    """Answer in a thread."""
    with Relay() as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def named(variables: dict[str, str], port: int) -> dict[str, str]:
    """Return variables that name this proxy."""
    return {name: value.replace("{port}", str(port)) for name, value in variables.items()}


def ours(variables: dict[str, str], url: str, port: int = 3128) -> bool:
    """Return whether we ask the proxy."""
    scheme, _, place = url.partition("://")
    host = place[1:].partition("]")[0] if place.startswith("[") else place.partition(":")[0]
    found = proxy_for(scheme, host, named(variables, port))
    assert found is None or (found.host, found.port) == ("127.0.0.1", port)
    return found is not None


def curls(relay: Relay, variables: dict[str, str], url: str) -> bool:
    """Return whether curl asks the proxy; directly it gets nowhere."""
    relay.asked.clear()
    subprocess.run(
        ["curl", "-gsk", "-m", "10", "-o", os.devnull, "--connect-to", "::127.0.0.1:1", url],
        env={**single.BARE, **named(variables, relay.server_port)},
        check=False,
    )
    return bool(relay.asked)


@cache
def knows_ipv6() -> bool:
    """Return whether this curl finds IPv6 addresses in `no_proxy`: 7.88 takes them for names."""
    said = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True)
    return int(said.stdout.split()[1].partition(".")[0]) >= 8


@pytest.mark.parametrize(("variables", "url", "asked"), TABLE)
def test_the_table(variables: dict[str, str], url: str, asked: bool) -> None:
    """As each row says."""
    assert ours(variables, url) is asked


@pytest.mark.skipif(shutil.which("curl") is None, reason=NO_CURL)
def test_curl_does_the_same(relay: Relay) -> None:
    """Every row, and drawn lists of `no_proxy`, with the real curl."""
    for variables, url, asked in TABLE:
        if "[" in url and not knows_ipv6():
            continue
        assert curls(relay, variables, url) is asked, (variables, url)
    drawn = random.Random(os.environ.get("MOORAGE_SEED", "7"))
    count = 600 if os.environ.get("MOORAGE_SOAK") else 60
    for _ in range(count):
        words = drawn.choices(WORDS, k=drawn.choice((1, 2, 3)))
        variables = {"http_proxy": P, "no_proxy": drawn.choice((",", ", ", " ")).join(words)}
        url = f"http://{drawn.choice(HOSTS if knows_ipv6() else NAMES)}:9"
        assert curls(relay, variables, url) is ours(variables, url), (variables, url)


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("socks5h://127.0.0.1:1080", "only http:// proxies"),
        ("https://127.0.0.1:1080", "only http:// proxies"),
        ("http://", "not the address of a proxy"),
        ("http://u:secret@h:x", "not the address of a proxy"),
        ("http://u:secret@h:99999", "not the address of a proxy"),
    ],
)
def test_a_proxy_that_cannot_be_used(variable: str, said: str) -> None:
    """The command ends with what to change, without the password, and asks nobody."""
    with pytest.raises(ValueError, match=said) as raised:
        Transport(HTTP, "token", environ={"http_proxy": variable})
    assert "secret" not in str(raised.value)
    Transport(HTTP, "token", environ={"http_proxy": variable, "no_proxy": "test"})
    done = single.finished("run", "-p", "p", "--", "true", MOORAGE_URL=HTTP, http_proxy=variable)
    assert (done.returncode, said in done.stderr) == (125, True)


def test_what_the_proxy_gets(relay: Relay) -> None:
    """The whole address and its password for http; for https only where to lead a tunnel."""
    address = f"http://ci:p%40ss@127.0.0.1:{relay.server_port}"
    through = Transport(f"{HTTP}/under", "token", environ={"http_proxy": address})
    assert through.request("GET", "/v1/x?a=b") == {"names": ["n1"]}
    assert through.reachable()
    assert [*through.lines("/v1/watch", "text/event-stream", {})] == [b'{"names": ["n1"]}']
    expected = f"Basic {base64.b64encode(b'ci:p@ss').decode()}"
    for _, path, heads in relay.asked:
        assert path.startswith(f"{HTTP}/under/")
        assert heads["proxy-authorization"] == expected
        assert heads["host"] == "svc.example.test:8778"
    assert [heads.get("x-auth-token") for _, _, heads in relay.asked] == ["token", None, "token"]
    relay.asked.clear()
    tunnel = Transport(HTTPS, "token", environ={"https_proxy": address})
    with pytest.raises(UnreachableError, match=r"by the proxy 127\.0\.0\.1.*502"):
        tunnel.request("GET", "/v1/x")
    ((method, path, heads),) = relay.asked
    assert (method, path) == ("CONNECT", "svc.example.test:443")
    assert (heads["proxy-authorization"], "x-auth-token" in heads) == (expected, False)


def test_each_program_asks_the_same_proxy(relay: Relay, server: Relay) -> None:
    """`run`, the functions for lease proxies and the Python client; none uses HTTP_PROXY."""
    proxy, where = (f"http://127.0.0.1:{one.server_port}" for one in (relay, server))
    script = single.finished("client.sh").stdout + "\nlease__release --names=n1"
    programs = (
        single.command("run", "-p", "p", "--", "true"),
        ["bash", "-c", script],
        [single.PYTHON, "-c", CLIENT],
    )
    locations = {"MOORAGE_URL": where, "LEASE_PROXY_SERVER_URL": where.replace("//", "//u:p@")}
    environment = {**single.BARE, **locations, "PYTHONPATH": str(single.ROOT / "src")}
    for command in programs:
        for name, through in (("http_proxy", True), ("HTTP_PROXY", False)):
            relay.asked.clear()
            server.asked.clear()
            variables = {**environment, name: proxy, "NO_PROXY": "svc"}
            subprocess.run(command, env=variables, capture_output=True, timeout=60, check=False)
            assert (bool(relay.asked), bool(server.asked)) == (through, not through), command[0]
            assert all(path.startswith(where) for _, path, _ in relay.asked)


CLIENT = """
from moorage.client import Client
try:
    Client().lease("p").acquire()
except Exception as error:
    print(error)
"""
