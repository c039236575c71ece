"""Which server, token and authorities a command uses: options, variables, contexts, nothing."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.client.contexts import Context, Contexts, path_of, read, written
from moorage.client.targets import target_of

Environ = dict[str, str]

LAB = Context("http://lab:1", token="lab-token", ca_file="/lab.pem")
PROD = Context("https://prod", token_file="TOKEN_FILE", certificate="/prod.pem")


@pytest.fixture
def environ(tmp_path: Path) -> Environ:
    """Return variables by which two contexts are found; `lab` is the current one."""
    token = tmp_path / "token"
    token.write_text("prod-token\n")
    prod = PROD._replace(token_file=str(token))
    path = tmp_path / "moorage" / "contexts.json"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(written(Contexts({"lab": LAB, "prod": prod}, "lab")))
    path.chmod(0o600)
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def found(words: dict[str, Any], environ: Environ, *, local: bool = False) -> tuple[Any, ...]:
    """Return address, token, certificate, authorities and context."""
    target = target_of(words, environ, local=local)
    token = target.token() if callable(target.token) else target.token
    return (target.url, token, target.certificate, target.ca_file, target.context)


NOWHERE = (None, None, None, None, None)
OF_LAB = ("http://lab:1", "lab-token", None, "/lab.pem", "lab")
OF_PROD = ("https://prod", "prod-token", "/prod.pem", None, "prod")
URL = {"MOORAGE_URL": "http://variable"}
CASES: list[tuple[dict[str, Any], Environ, tuple[Any, ...]]] = [
    ({}, {}, OF_LAB),
    ({}, {"MOORAGE_CONTEXT": "prod"}, OF_PROD),
    ({}, {"MOORAGE_CONTEXT": ""}, OF_LAB),
    ({"context": "prod"}, {}, OF_PROD),
    ({"context": "prod"}, {"MOORAGE_CONTEXT": "lab"}, OF_PROD),
    # What the variables say is for another server than that of an option.
    ({"context": "prod"}, {**URL, "MOORAGE_TOKEN": "x", "MOORAGE_CA_FILE": "/x"}, OF_PROD),
    ({"context": "lab", "token": "mine"}, {}, ("http://lab:1", "mine", None, "/lab.pem", "lab")),
    # The token of a context goes to no other server.
    ({}, URL, ("http://variable", None, None, None, None)),
    ({"url": "http://o"}, {}, ("http://o", None, None, None, None)),
    ({"url": "http://o"}, {"MOORAGE_CONTEXT": "lab"}, ("http://o", None, None, None, None)),
    ({"url": "http://o"}, URL, ("http://o", None, None, None, None)),
    ({}, {**URL, "MOORAGE_TOKEN": "t"}, ("http://variable", "t", None, None, None)),
    ({"token": "o"}, {**URL, "MOORAGE_TOKEN": "t"}, ("http://variable", "o", None, None, None)),
    ({}, {"MOORAGE_TOKEN": "t"}, ("http://lab:1", "t", None, "/lab.pem", "lab")),
    (
        {"certificate": "/pinned.pem"},
        {"MOORAGE_CA_FILE": "/ca.pem"},
        ("http://lab:1", "lab-token", "/pinned.pem", None, "lab"),
    ),
    ({}, {"MOORAGE_CERTIFICATE": "/v"}, ("http://lab:1", "lab-token", "/v", None, "lab")),
    # A local database that somebody names goes before the current context, but not before others.
    ({}, {"MOORAGE_DATABASE": "sqlite:///x"}, NOWHERE),
    ({}, {"MOORAGE_CONFIG": "x.toml"}, NOWHERE),
    ({}, {"MOORAGE_DATABASE": "sqlite:///x", "MOORAGE_CONTEXT": "prod"}, OF_PROD),
    ({"context": "prod"}, {"MOORAGE_DATABASE": "sqlite:///x"}, OF_PROD),
]


@pytest.mark.parametrize(("words", "more", "expected"), CASES)
def test_what_goes_first(
    environ: Environ, words: dict[str, Any], more: Environ, expected: tuple[Any, ...]
) -> None:
    """Options, then variables, then the current context, then a local database."""
    assert found(words, {**environ, **more}) == expected


def test_a_database_of_an_option(environ: Environ) -> None:
    """It goes before contexts of variables and before the current one."""
    assert found({}, {**environ, "MOORAGE_CONTEXT": "prod"}, local=True) == NOWHERE
    assert found({"context": "prod"}, environ, local=True) == OF_PROD


@pytest.mark.parametrize(
    ("words", "more", "said"),
    [
        ({"url": "http://o", "context": "lab"}, {}, "--url and --context exclude each other"),
        ({}, {**URL, "MOORAGE_CONTEXT": "lab"}, "MOORAGE_URL and MOORAGE_CONTEXT exclude"),
        ({"context": "nix"}, {}, "there is no context nix; there are lab, prod"),
        ({}, {"MOORAGE_CONTEXT": "nix"}, "there is no context nix"),
        ({"token": "two words"}, {}, "--token is not a token"),
    ],
)
def test_contradictions(environ: Environ, words: dict[str, Any], more: Environ, said: str) -> None:
    """They are refused: a token must not go where nobody wants it."""
    with pytest.raises(ValueError, match=said):
        target_of(words, {**environ, **more})


def test_without_a_file(tmp_path: Path) -> None:
    """There are no contexts, and no home is no error."""
    assert found({}, {"XDG_CONFIG_HOME": str(tmp_path)}) == NOWHERE
    assert read(None) == Contexts({})
    with pytest.raises(ValueError, match="there is no context lab; there are none"):
        target_of({"context": "lab"}, {"XDG_CONFIG_HOME": str(tmp_path)})
    usual = os.path.expanduser("~/.config/moorage/contexts.json")
    assert path_of({}) == path_of({"XDG_CONFIG_HOME": "relative"}) == usual


def _readable(path: Path) -> None:
    path.chmod(0o640)


def _writable_folder(path: Path) -> None:
    path.parent.chmod(0o777)


def _strangers(path: Path) -> None:
    os.chown(path, 65_533, 65_533)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_readable, "has the mode 0640, so others can read it"),
        (_writable_folder, "everybody can write to"),
        (_strangers, "belongs to"),
        (_pipe, "is not a regular file"),
    ],
)
def test_a_file_that_others_can_change_or_read(
    environ: Environ, spoil: Callable[[Path], None], said: str
) -> None:
    """It is refused, as the token next to a database is; with an address it is not even read."""
    path = Path(path_of(environ) or "")
    if spoil is _strangers and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    assert found({}, environ) == OF_LAB
    spoil(path)
    with pytest.raises(ValueError, match=said):
        target_of({}, environ)
    assert found({"url": "http://o"}, environ)[0] == "http://o"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "Expecting value"),
        ("[]", "the document must be an object"),
        ('{"contexts": 1}', "contexts must be an object"),
        ('{"contexts": {"a b": {"url": "http://x"}}}', "the name of a context"),
        ('{"contexts": {"a": {}}}', "has no url"),
        ('{"contexts": {"a": {"url": 1}}}', "url of context a must be a text"),
        ('{"contexts": {"a": {"url": "x", "port": "1"}}}', "must not have 'port'"),
        ('{"contexts": {"a": {"url": "x", "token": "a", "token_file": "b"}}}', "both"),
        ('{"current": "b", "contexts": {}}', "current must be the name"),
        ('{"current": [], "contexts": {}}', "current must be the name"),
        ('{"curent": "b"}', "must not have 'curent'"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_a_file_that_is_wrong(environ: Environ, content: str, said: str) -> None:
    """It is refused with what is wrong, and without its tokens."""
    path = Path(path_of(environ) or "")
    path.write_text(content)
    with pytest.raises(ValueError, match=said) as refused:
        target_of({}, environ)
    assert str(path) in str(refused.value)


def test_the_file_is_plain_json(environ: Environ) -> None:
    """People can write it: only what is set is there."""
    content = json.loads(Path(path_of(environ) or "").read_text())
    assert content["current"] == "lab"
    assert content["contexts"]["lab"] == {
        "url": "http://lab:1",
        "token": "lab-token",
        "ca_file": "/lab.pem",
    }
