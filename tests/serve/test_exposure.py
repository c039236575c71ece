"""The log warns of what the settings expose, and names the address that is really served."""

from pathlib import Path

import pytest
from msgspec import convert

from moorage.config.addresses import Address
from moorage.config.settings import Settings
from moorage.serve.lifecycle import dangers
from tests.e2e.support.server import serve

ANYWHERE, HERE = Address("0.0.0.0", 8778), Address("127.0.0.1", 8778)
BOSKOS = Address("::", 8080)

CASES = [
    ({}, HERE, None, []),
    ({}, ANYWHERE, None, ["tokens reach 0.0.0.0:8778 unencrypted"]),
    ({"tls_cert": "c", "tls_key": "k"}, ANYWHERE, None, []),
    ({"trusted_proxies": ("10.0.0.0/8",)}, ANYWHERE, None, []),
    ({"auth": "noauth2"}, HERE, None, []),
    (
        {"auth": "noauth2"},
        ANYWHERE,
        None,
        ["anyone who can reach 0.0.0.0:8778 is an administrator"],
    ),
    ({}, HERE, Address("::1", 8080), []),
    ({}, HERE, BOSKOS, ["anyone who can reach [::]:8080 can acquire and release"]),
    ({"boskos_password_file": "f"}, HERE, BOSKOS, ["Boskos' clients reach [::]:8080 unencrypted"]),
    ({"boskos_password_file": "f", "tls_cert": "c", "tls_key": "k"}, HERE, BOSKOS, []),
]


@pytest.mark.parametrize(("settings", "main", "boskos", "words"), CASES)
def test_each_danger_has_a_warning(
    settings: dict[str, object], main: Address, boskos: Address | None, words: list[str]
) -> None:
    """There is one warning per danger, and none otherwise."""
    found = list(dangers(convert(settings, Settings), main, boskos))
    assert len(found) == len(words)
    assert all(word in line for word, line in zip(words, found, strict=True))


def test_the_warning_is_logged_at_the_start(tmp_path: Path) -> None:
    """It names the actual port, before the first request."""
    options = ["--auth", "noauth2", "--insecure-noauth2", "--listen", "0.0.0.0:0"]
    with serve(tmp_path / "m.sqlite", *options) as server:
        where = server.url.removeprefix("http://")
        (line,) = [line for line in server.said if "WARNING" in line]
        assert f"anyone who can reach {where} is an administrator" in line
        assert "127.0.0.1" not in line
