"""Addresses of databases: secrets are hidden in any notation."""

import string

import pytest

from moorage.store.addresses import (
    has_password,
    is_postgres,
    password_hidden,
    password_removed,
    with_password,
)
from moorage.store.api import Unusable
from moorage.store.open import open_engine
from moorage.store.postgres.connection import conninfo_of, name_of

SECRETS = {
    "postgresql://me:S3cret@host/name": "postgresql://me:(hidden)@host/name",
    "postgres://me:S3@cret@a:1,b:2/name": "postgres://me:(hidden)@a:1,b:2/name",
    "postgresql://me:S3:cret@host:5432/name": "postgresql://me:(hidden)@host:5432/name",
    "postgresql://me:S3/cret@host/name": "postgresql://me:(hidden)@host/name",
    "postgresql://me:S3?cret@host/name": "postgresql://me:(hidden)@host/name",
    "postgresql://:S3cret@host": "postgresql://:(hidden)@host",
    "postgresql://h/x?user=me&password=S3cret&a=1": (
        "postgresql://h/x?user=me&password=(hidden)&a=1"
    ),
    "postgresql://h/x?sslpassword=S3cret": "postgresql://h/x?sslpassword=(hidden)",
    "postgresql://me:S3cret@h/x?password=S3cret": (
        "postgresql://me:(hidden)@h/x?password=(hidden)"
    ),
    "postgres+driver://me:S3cret@host/name": "postgres+driver://me:(hidden)@host/name",
}
PLAIN = (
    "postgresql://me@host/name",
    "postgresql:///name?host=/run/x@y:z",
    "postgresql://moorage@/db?host=/a,/b&user=x",
    "postgresql://host:5432/name",
    "sqlite:////var/lib/moorage.sqlite",
    "sqlite:///a@b:c.sqlite",
    "",
)


@pytest.mark.parametrize(("url", "shown"), SECRETS.items())
def test_secrets_are_hidden_and_removed(url: str, shown: str) -> None:
    """No part of a password remains, and the rest of the address is unchanged."""
    assert has_password(url)
    assert password_hidden(url) == shown
    removed = password_removed(url)
    for text in (shown, removed):
        assert "S3" not in text
        assert "cret" not in text
    assert not has_password(removed)
    assert removed == shown.replace(":(hidden)", "").replace("&password=(hidden)", "").replace(
        "?password=(hidden)", ""
    ).replace("?sslpassword=(hidden)", "")


@pytest.mark.parametrize("url", PLAIN)
def test_an_address_without_a_secret_is_unchanged(url: str) -> None:
    """This includes addresses that look as if they contained a password."""
    assert not has_password(url)
    assert password_hidden(url) == password_removed(url) == url


@pytest.mark.parametrize("url", [url for url in PLAIN if is_postgres(url)])
def test_a_password_can_be_added(url: str) -> None:
    """The password may contain any characters; it can be hidden and removed again."""
    joined = with_password(url, "pa:ss/w@rd?&=%")
    assert has_password(joined)
    assert password_removed(joined) == url
    assert "rd" not in password_hidden(joined).partition("password=")[2]


@pytest.mark.parametrize(
    "url",
    [
        "postgres+driver://me:S3cret@host/name",
        "mysql://me:S3cret@host/name",
        "postgresql://me:S3cret@[host/name",
        "postgresql://me:S3%zzcret@host/name",
        "postgresql://h/x?password=S3cret=more",
        "postgresql://h/x?password=a&S3cret",
        "postgresql://me:S3/cret@host/name",
        "postgresql://me:S3@cret@host/name",
    ],
)
def test_the_refusal_of_a_bad_address_hides_its_password(url: str) -> None:
    """Neither Moorage's nor libpq's part of the message contains it."""
    with pytest.raises(Unusable) as refused:
        open_engine(url)
    assert "S3" not in str(refused.value)
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize("character", [*string.punctuation, " ", "\n", "\t", "\xe9"])
def test_no_character_of_a_password_reveals_it(character: str) -> None:
    """Even unescaped and in any place, neither an error nor a database's name contains it."""
    for url in (
        f"postgresql://me:S3{character}cret@host/name",
        f"postgresql://host/name?password=S3{character}cret",
        f"postgresql://host?password=S3{character}cret",
        f"postgresql://host/name?password=a{character}S3=cret",
        f"postgresql://host/name?sslmode=x&password=S3{character}cret",
        f"postgresql://host/name?sslpassword=S3{character}cret",
    ):
        try:
            conninfo_of(url)
            shown = name_of(url)
        except ValueError as error:
            shown = str(error)
        assert "S3" not in shown, url
        assert "cret" not in shown, url


def test_a_parameter_that_libpq_does_not_know_is_named() -> None:
    """It stands before the password, so it cannot be a part of it."""
    with pytest.raises(ValueError, match="sslmodus"):
        conninfo_of("postgresql://host/name?sslmodus=x&password=S3cret")
