"""Disguised requests through a gate and nginx: a real Ironic starts nothing without a unit.

The pool has no units, so whatever starts work has passed the gate without one.
"""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection
from urllib.parse import urlsplit

from tests.baremetal.gate import MOORAGE, UNDERSTOOD
from tests.e2e.support.server import Server, serve
from tests.integrations.ironic.disguises import Disguise, disguises
from tests.integrations.ironic.gate.gates import READY
from tests.support.ironic import Ironic
from tests.support.nginx import Nginx
from tests.support.suites import print_line

COUNT = 250
"""Disguises for each way; only a part of them is passed on or decided."""

SEED = 39
LEAST = 10
"""Fewer requests that Ironic executes without the gate mean that the control is none."""

ACCEPTED = b" 202 "
RULES = """
[[rule]]
pool = "none"

[[client]]
user_agent = "*"
hold = 0
"""

WAYS = {
    "as it comes": "location / { proxy_pass http://%s; }",
    "with a URI": "location / { proxy_pass http://%s/; }",
    "below a prefix": "location /baremetal/ { proxy_pass http://%s/; }",
    "decoded": "location / { proxy_pass http://%s$uri$is_args$args; }",
    "rewritten": "rewrite ^/(.*)$ /$1 break; location / { proxy_pass http://%s; }",
    "lenient": (
        "merge_slashes off; underscores_in_headers on; ignore_invalid_headers off;"
        " location / { proxy_pass http://%s/; }"
    ),
}
"""How operators let nginx pass requests on; `%s` is Ironic."""


@contextmanager
def _closed_gates(folder: Path, upstreams: list[str]) -> Iterator[list[Server]]:
    """Start gates whose pool has no units."""
    database = folder / "closed.sqlite"
    with serve(database, moorage=MOORAGE) as server:

        def administer(*words: str) -> str:
            command = [*MOORAGE, *words, "--database", f"sqlite:///{database}"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            return done.stdout.strip()

        administer("pool", "create", "none", "--limit", "0", "--expire", "keep")
        token = administer(
            *("token", "create", "--name", "gate", "--role", "governor", "--for", "pool=none")
        )
        rules = folder / "rules.toml"
        rules.write_text(RULES)
        gates = []
        try:
            for url in upstreams:
                command = [*MOORAGE, "gate", "--ironic", url, "--rules", str(rules)]
                command += ["--listen", "127.0.0.1:0", "--url", server.url, "--token", token]
                gates.append(Server(command, ready=READY))
            yield gates
        finally:
            for one in gates:
                one.stop()


def check_disguises(ironic: Ironic, folder: Path, program: Path) -> None:
    """Send disguised requests for `active` of node-2, which is available and stays so."""
    address = urlsplit(ironic.url).netloc
    servers = {name: text.replace("%s", address) for name, text in WAYS.items()}
    with Nginx(program, servers) as nginx:
        urls = [
            url + ("/baremetal" if name == "below a prefix" else "")
            for name, url in nginx.urls.items()
        ]
        with _closed_gates(folder, urls) as gates, ThreadPoolExecutor(4) as clients:
            for name, one in zip(WAYS, gates, strict=True):
                made = disguises(SEED, COUNT, "node-2", "active")
                answers = clients.map(lambda sent, url=one.url: (sent, _answer(url, sent)), made)
                for sent, answer in answers:
                    first = answer.partition(b"\r\n")[0]
                    assert ACCEPTED not in first, f"{name}: {sent}: {answer!r}"
                    assert UNDERSTOOD not in answer, f"{name}: {sent}: {answer!r}"
                state = ironic.states()["node-2"]
                assert state == "available", f"{name}: node-2 is {state}"
        executed = sum(_control(url) for url in urls)
    assert executed >= LEAST, f"only {executed} of the requests without the gate"
    print_line(
        f"e2e: baremetal: {len(WAYS)} times {COUNT} disguised requests start nothing through the "
        f"gate and nginx; without the gate Ironic understands {executed} of them"
    )


def _control(url: str) -> int:
    """Return how many disguises Ironic understands that the gate does not take for what they are.

    `manage` of node-1, which is manageable: Ironic answers that it is not possible.
    """
    made = disguises(SEED, COUNT, "node-1", "manage")
    return sum(UNDERSTOOD in _answer(url, one) for one in made)


def _answer(url: str, one: Disguise) -> bytes:
    """Return what a server answers, as far as it comes within two seconds."""
    parts = urlsplit(url)
    found = b""
    with create_connection((parts.hostname, parts.port), timeout=2.0) as client:
        try:
            client.sendall(one.sent())
            while piece := client.recv(65_536):
                found += piece
        except OSError:
            pass
    return found
