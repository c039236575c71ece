"""The gate serves TLS, and trusts only the given authorities for Ironic."""

import ssl
from pathlib import Path
from subprocess import run
from urllib.request import urlopen

from tests.e2e.support.server import MOORAGE
from tests.integrations.ironic.gate.gates import exchange, gate, request
from tests.integrations.ironic.gate.raw_upstream import RawUpstream

CERTIFICATE = str(Path(__file__).with_name("tls.pem"))
"""With its key; for 127.0.0.1."""

SERVING = ("--tls-cert", CERTIFICATE)


def test_tls() -> None:
    """One gate serves TLS; another one has it as its Ironic, and trusts its certificate."""
    trusted = ssl.create_default_context(cafile=CERTIFICATE)
    with RawUpstream() as upstream, gate(upstream.url, *SERVING) as inner:
        assert inner.url.startswith("https://")
        with urlopen(f"{inner.url}/v1/nodes", context=trusted) as answer:
            assert answer.read() == b"{}"
        with gate(inner.url, "--ca-file", CERTIFICATE) as outer:
            assert exchange(outer.url, request("GET", "/v1/x")).endswith(b"{}")
        with gate(inner.url) as outer:
            assert exchange(outer.url, request("GET", "/v1/x")).startswith(b"HTTP/1.1 503 ")


def test_usage() -> None:
    """A certificate that is not there, or a key without one, ends the start with one line."""
    usual = ["--ironic", "http://127.0.0.1:9", "--pool", "x", "--url", "http://127.0.0.1:9"]
    for words, said in (
        (["--tls-key", CERTIFICATE], "--tls-key needs --tls-cert"),
        (["--tls-cert", "/none"], "/none"),
        (["--rules", "/none"], "give either --pool or --rules"),
        (["--listen", "nowhere"], "'nowhere' is not HOST:PORT"),
        (["--listen", "127.0.0.1:65536"], "'127.0.0.1:65536' is not HOST:PORT"),
        (["--ironic", "127.0.0.1:9"], "'127.0.0.1:9' is not the URL of a server"),
        (
            ["--ironic", "http://127.0.0.1:9/v1"],
            "--ironic must not end with /v1: http://127.0.0.1:9",
        ),
    ):
        done = run([*MOORAGE, "gate", *usual, *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert said in done.stderr
