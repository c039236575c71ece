"""The path before all addresses: from the setting, and from the headers of trusted proxies."""

import pytest

from moorage.config import ConfigError
from moorage.config.addresses import networks_parse
from moorage.config.settings import load
from moorage.faces.web import Scope
from moorage.serve.http.proxies import Proxies
from moorage.serve.mount import Mount

OWN = ("v1", "ui", "resource_providers")

ARRIVALS = [
    # setting, X-Forwarded-Prefix, path that arrives, prefix of the answer, path inside
    ("", "", "/v1/pools", "", "/v1/pools"),
    ("", "", "/placement/v1/pools", "", "/placement/v1/pools"),
    ("/placement", "", "/v1/pools", "/placement", "/v1/pools"),
    ("/placement", "", "/placement/v1/pools", "/placement", "/v1/pools"),
    ("/placement", "", "/placement", "/placement", ""),
    ("/placement", "", "/placement/", "/placement", "/"),
    ("/placement", "", "/", "/placement", "/"),
    ("/placement", "", "/placements/x", "/placement", "/placements/x"),
    ("/placement", "", "/placement/placement/x", "/placement", "/placement/x"),
    ("/a/b", "", "/a/b/ui", "/a/b", "/ui"),
    ("/a/b", "", "/a/ui", "/a/b", "/a/ui"),
    ("", "/placement", "/resource_providers", "/placement", "/resource_providers"),
    ("", "/placement", "/placement/resource_providers", "/placement", "/resource_providers"),
    ("", "/placement/", "/ui", "/placement", "/ui"),
    ("/placement", "/placement", "/ui", "/placement", "/ui"),
    ("/placement", "/placement", "/placement/ui", "/placement", "/ui"),
    ("/placement", "/other", "/ui", "/other", "/ui"),
    ("/placement", "/api", "/placement/ui", "/api/placement", "/ui"),
    ("/placement", "/api/placement", "/placement/ui", "/api/placement", "/ui"),
    ("/placement", "/api/placement", "/api/placement/ui", "/api/placement", "/ui"),
    ("", "/forged, /placement", "/ui", "/placement", "/ui"),
    # A prefix that looks like a path of this server cannot be distinguished from one.
    ("", "/v1", "/v1/pools", "", "/v1/pools"),
    ("/placement", "/ui/x", "/ui", "/placement", "/ui"),
]

INVALID = (
    *(
        "//evil",
        "//evil.example/x",
        "/\\evil",
        "https://evil",
        "evil",
        "/a//b",
        "/a/../b",
        "/..",
        "/.",
    ),
    *(
        "/a b",
        "/a%2fb",
        "/a?b",
        "/a#b",
        '/a"b',
        "/a<b",
        "/a'b",
        "/a;b",
        "/a\tb",
        "/ä",
        "/" + "x" * 300,
    ),
    *("/a,", "/a\x0b", "/a:b", "/@evil", "/a\x00"),
)


def placed(setting: str, header: str, path: str, headers: int = 1) -> Scope:
    """Return a request from a trusted proxy as the faces see it."""
    scope: Scope = {"path": path, "root_path": "", "headers": []}
    if header:
        scope["headers"] = [(b"x-forwarded-prefix", header.encode("utf-8"))] * headers
    Proxies(networks_parse(("127.0.0.1",))).believe(scope)
    mount = Mount(setting, OWN)
    mount.place(scope)
    mount.place(scope)  # what is answered from memory is placed before the application's turn
    return scope


@pytest.mark.parametrize(("setting", "header", "path", "prefix", "inside"), ARRIVALS)
def test_a_path_is_found_with_and_without_the_prefix(
    setting: str, header: str, path: str, prefix: str, inside: str
) -> None:
    """Whether a proxy removes it, keeps it, or says that it has removed it."""
    scope = placed(setting, header, path)
    assert (scope["root_path"], scope["path"]) == (prefix, inside)


@pytest.mark.parametrize("text", INVALID)
@pytest.mark.parametrize("last", [True, False])
def test_a_header_is_no_way_to_another_host(text: str, last: bool) -> None:
    """Only what needs no escape counts: no other host, no end of a line, no second header."""
    header = text if last else f"{text}, /placement"
    assert placed("", header, "/ui")["root_path"] == ("" if last else "/placement")


@pytest.mark.parametrize("text", INVALID)
def test_an_invalid_setting_is_refused(text: str) -> None:
    """The message says what it must be."""
    with pytest.raises(ConfigError, match=r"path_prefix: .* must be a path such as /placement"):
        load({"path_prefix": text}, {})


@pytest.mark.parametrize("text", ["", "/", "/placement", "/placement/", "/a/b-c_d.e~f"])
def test_a_valid_setting_is_taken(text: str) -> None:
    """The last slash does not count."""
    assert load({"path_prefix": text}, {}).settings.path_prefix == text
