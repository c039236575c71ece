"""Behind a proxy: the client's scheme and address, if the proxy is trusted, and only then."""

import re
from collections.abc import Iterator

import pytest

from tests.e2e.support.server import serve
from tests.faces.dashboard.support.browserless import Browser
from tests.faces.v1.native import Native

HTTPS = {"X_Forwarded_Proto": "https"}


@pytest.fixture(scope="module", params=[True, False], ids=["trusted", "not trusted"])
def proxied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Native, bool]]:
    """Return a caller of a server that trusts proxies on this host, or not."""
    database = tmp_path_factory.mktemp("proxied") / "moorage.sqlite"
    more = ["--trusted-proxies", "127.0.0.1"] if request.param else []
    with serve(database, "--no-access-log", *more) as server:
        yield Native(server.url, database), request.param


def statuses(native: Native, addresses: list[str]) -> list[int]:
    """Fail to sign in from some addresses."""
    return [Browser(native.url).sign_in("wrong", X_Forwarded_For=one).status for one in addresses]


def test_failures_count_by_the_address_of_the_client(proxied: tuple[Native, bool]) -> None:
    """A /64 counts as one, and what a client claims itself does not count."""
    native, trusted = proxied
    one_network = [f"2001:db8::{number:x}" for number in range(6)]
    assert statuses(native, one_network) == [401] * 5 + [429]
    assert statuses(native, ["2001:db8:0:1::1", "192.0.2.1"]) == [401 if trusted else 429] * 2
    claimed = [f"198.51.100.{number}, 192.0.2.9" for number in range(6)]
    assert statuses(native, claimed) == ([401] * 5 + [429] if trusted else [429] * 6)
    if trusted:
        assert statuses(native, ["::ffff:192.0.2.9"]) == [429]


def test_the_cookie_is_that_of_the_client_s_scheme(proxied: tuple[Native, bool]) -> None:
    """With TLS it is secure and bound to the host, and forms must come from a page with TLS."""
    native, trusted = proxied
    browser, token = Browser(native.url), native.token("reader")
    https = native.url.replace("http://", "https://")
    answer = browser.sign_in(token, Origin=https, **HTTPS)
    assert answer.status == 303
    name, _, rest = answer.headers["set-cookie"].partition("=")
    port = native.url.rpartition(":")[2]
    assert name == ("__Host-moorage" if trusted else f"moorage-{port}")
    assert ("; Secure" in rest) == trusted
    assert re.search("; Path=/; HttpOnly; SameSite=Strict", rest)
    assert browser.get("/ui", **HTTPS).status == 200
    assert browser.get("/ui").status == (303 if trusted else 200)
    plain = browser.sign_in(token, Origin=native.url, **HTTPS)
    assert plain.status == (403 if trusted else 303)


def test_processes_behind_a_plain_proxy_share_the_cookie(proxied: tuple[Native, bool]) -> None:
    """It is named after the port that the browser sees, not after that of the process."""
    native, _ = proxied
    browser, host = Browser(native.url), "localhost:7777"
    answer = browser.sign_in(native.token("reader"), Host=host, Origin=f"http://{host}")
    assert answer.headers["set-cookie"].startswith("moorage-7777=")
    assert browser.get("/ui", Host=host).status == 200
    assert browser.get("/ui").status == 303
