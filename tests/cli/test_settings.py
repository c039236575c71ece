"""Where settings come from, and the errors of wrong ones."""

from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from moorage.config import ConfigError
from moorage.config.addresses import Address, address_parse
from moorage.config.settings import FIELDS, Settings, database_address, load
from moorage.faces.web import Limits
from moorage.service.app import Service
from moorage.service.batch.transactor import Transactor
from tests.cli.command import answer, moorage, refusal


def test_sources_in_rising_order(tmp_path: Path) -> None:
    """Default, file, environment, option: the later source wins and is shown as the origin."""
    file = tmp_path / "moorage.toml"
    file.write_text("queue_max = 2\nbody_bytes_max = 2\nheader_count_max = 2\n")
    environ = {"MOORAGE_BODY_BYTES_MAX": "3", "MOORAGE_HEADER_COUNT_MAX": "3"}
    settings, origins, _ = load({"header_count_max": "4"}, environ, str(file))
    defaults = Settings()
    assert (
        settings.query_bytes_max,
        settings.queue_max,
        settings.body_bytes_max,
        settings.header_count_max,
    ) == (defaults.query_bytes_max, 2, 3, 4)
    names = ("query_bytes_max", "queue_max", "body_bytes_max", "header_count_max")
    assert [origins[name] for name in names] == [
        "default",
        f"file {file}",
        "environment MOORAGE_BODY_BYTES_MAX",
        "option --header-count-max",
    ]


def test_values_of_every_kind(tmp_path: Path) -> None:
    """Lists, booleans and numbers are understood in every source."""
    file = tmp_path / "moorage.toml"
    file.write_text('allowed_hosts = ["a", "b"]\naccess_log = false\nidle_seconds_max = 5\n')
    from_file = load({}, {}, str(file)).settings
    assert from_file.allowed_hosts == ("a", "b")
    assert from_file.access_log is False
    assert from_file.idle_seconds_max == 5.0
    environ = {"MOORAGE_ALLOWED_HOSTS": "c, d", "MOORAGE_ACCESS_LOG": "true"}
    from_environment = load({}, environ, str(file)).settings
    assert from_environment.allowed_hosts == ("c", "d")
    assert from_environment.access_log is True


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing = 1", ["nothing"]),
        ("queue_max = 'many'", ["queue_max", "many"]),
        ("queue_max = 0", ["queue_max", ">= 1"]),
        ("auth = 'none'", ["auth", "none", "token, noauth2, keystone"]),
        ("queue_max = ", ["TOML"]),
        ("query_bytes_max = 100000", ["query_bytes_max", "header_bytes_max"]),
        ("keystone_cache_seconds_max = 61", ["keystone_cache_seconds_max", "<= 60"]),
    ],
)
def test_wrong_settings_files_are_explained(tmp_path: Path, text: str, words: list[str]) -> None:
    """The error names the setting, its value and what is valid."""
    (tmp_path / "moorage.toml").write_text(text)
    line = refusal(2, "config", "show", directory=tmp_path)
    assert [word for word in words if word not in line] == []


def test_a_missing_file(tmp_path: Path) -> None:
    """A settings file that is named must exist."""
    line = refusal(2, "config", "show", "--config", "none.toml", directory=tmp_path)
    assert "none.toml" in line
    assert "none.toml" in refusal(
        2, "config", "show", directory=tmp_path, MOORAGE_CONFIG="none.toml"
    )


def test_show(tmp_path: Path) -> None:
    """Every setting is shown with its origin, but secrets are hidden."""
    environ = {"MOORAGE_KEYSTONE_PASSWORD": "s3cret", "MOORAGE_QUEUE_MAX": "7"}
    shown: Any = answer("config", "show", "--origin", directory=tmp_path, **environ)
    assert set(shown) == set(FIELDS)
    assert shown["queue_max"] == {"value": 7, "origin": "environment MOORAGE_QUEUE_MAX"}
    assert shown["keystone_password"]["value"] == "(hidden)"
    for options in ([], ["--origin"]):
        text = moorage("config", "show", *options, directory=tmp_path, **environ).stdout
        assert "s3cret" not in text
        assert len(text.splitlines()) == len(FIELDS) + 1


@pytest.mark.parametrize(
    ("database", "expected"),
    [
        ("postgresql://me:s3cret@host/name", "postgresql://me:(hidden)@host/name"),
        ("postgresql://me:s3@cret@a:1,b:2/name", "postgresql://me:(hidden)@a:1,b:2/name"),
        ("postgresql://host/x?user=me&password=s3cret&a=1", None),
        ("postgresql://me@host/name", "postgresql://me@host/name"),
        ("postgresql:///name?host=/run/x@y:z", "postgresql:///name?host=/run/x@y:z"),
        ("sqlite:////var/lib/moorage.sqlite", "sqlite:////var/lib/moorage.sqlite"),
    ],
)
def test_the_password_of_a_database_is_not_shown(
    tmp_path: Path, database: str, expected: str | None
) -> None:
    """The address is shown, but the password in it is hidden."""
    shown: Any = answer("config", "show", directory=tmp_path, MOORAGE_DATABASE=database)
    expected = expected or "postgresql://host/x?user=me&password=(hidden)&a=1"
    assert shown["database"] == expected


@pytest.mark.parametrize(
    ("text", "address", "loopback"),
    [
        ("127.0.0.1:80", Address("127.0.0.1", 80), True),
        ("localhost:0", Address("localhost", 0), True),
        ("[::1]:80", Address("::1", 80), True),
        ("[::]:80", Address("::", 80), False),
        ("0.0.0.0:80", Address("0.0.0.0", 80), False),
        ("db.example:65535", Address("db.example", 65535), False),
    ],
)
def test_addresses(text: str, address: Address, loopback: bool) -> None:
    """HOST:PORT is split, and loopback addresses are recognized."""
    assert address_parse(text) == address
    assert address.loopback is loopback
    assert address.url("http") == f"http://{text}"


@pytest.mark.parametrize("text", ["", "80", ":80", "a:", "a:b", "a:65536", "::1:80", "a:-1", "a:²"])
def test_invalid_addresses(text: str) -> None:
    """The error for anything else than HOST:PORT shows the format."""
    with pytest.raises(ConfigError, match="HOST:PORT"):
        address_parse(text)


def test_a_settings_file_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    """Such a file is refused if it was found in the folder, and used if it was named."""
    file = tmp_path / "moorage.toml"
    file.write_text("queue_max = 7\n")
    file.chmod(0o666)
    for command in (["config", "show"], ["pool", "list"], ["token", "list"]):
        line = refusal(2, *command, directory=tmp_path)
        assert line.startswith("moorage.toml is not used: everybody can write to moorage.toml")
        assert "--config or MOORAGE_CONFIG" in line
    named: Any = answer("config", "show", "--config", "moorage.toml", directory=tmp_path)
    assert named["queue_max"] == 7
    variable: Any = answer("config", "show", directory=tmp_path, MOORAGE_CONFIG="moorage.toml")
    assert variable["queue_max"] == 7
    file.chmod(0o644)
    found: Any = answer("config", "show", directory=tmp_path)
    assert found["queue_max"] == 7
    tmp_path.chmod(0o777)
    assert "everybody can write to" in refusal(2, "config", "show", directory=tmp_path)
    file.unlink()
    assert answer("config", "show", directory=tmp_path)


def test_a_password_in_an_option_is_refused(tmp_path: Path) -> None:
    """A password in an option is refused, because every user of the machine can read it."""
    database = "postgresql://me:S3cret@127.0.0.1:1/x"
    for command in (["serve"], ["config", "show"], ["token", "list"]):
        line = refusal(2, *command, "--database", database, directory=tmp_path)
        assert "database_password_file" in line
        assert "S3" not in line
    shown: Any = answer("config", "show", directory=tmp_path, MOORAGE_DATABASE=database)
    assert shown["database"] == "postgresql://me:(hidden)@127.0.0.1:1/x"


@pytest.mark.parametrize(
    ("file", "database", "words"),
    [
        (None, "postgresql://me@127.0.0.1:1/x", "cannot read"),
        ("", "postgresql://me@127.0.0.1:1/x", "is empty"),
        ("S3cret", "sqlite:///x", "PostgreSQL"),
        ("S3cret", "postgresql://me:other@127.0.0.1:1/x", "both"),
    ],
)
def test_wrong_password_files(tmp_path: Path, file: str | None, database: str, words: str) -> None:
    """The error is one line and comes before a database is opened."""
    path = tmp_path / "password"
    if file is not None:
        path.write_text(file)
    variables = {"MOORAGE_DATABASE": database, "MOORAGE_DATABASE_PASSWORD_FILE": str(path)}
    line = refusal(2, "serve", directory=tmp_path, **variables)
    assert words in line
    assert "S3" not in line and "other" not in line


def test_a_password_file_is_only_part_of_the_address(tmp_path: Path) -> None:
    """The password is part of the address that the engine gets, and nothing prints it."""
    path = tmp_path / "password"
    path.write_text("S3/c ret\n")
    loaded = load({}, {"MOORAGE_DATABASE_PASSWORD_FILE": str(path)} | PLAIN_DATABASE, None)
    address = database_address(loaded.settings)
    assert address == "postgresql://me@127.0.0.1:1/x?password=S3%2Fc%20ret"
    variables = {"MOORAGE_DATABASE_PASSWORD_FILE": str(path)} | PLAIN_DATABASE
    shown = moorage("config", "show", directory=tmp_path, **variables)
    failed = moorage("token", "list", directory=tmp_path, **variables)
    assert failed.returncode == 2
    assert "S3" not in shown.stdout + shown.stderr + failed.stdout + failed.stderr


PLAIN_DATABASE = {"MOORAGE_DATABASE": "postgresql://me@127.0.0.1:1/x"}


def test_keystone_s_address_has_no_password(tmp_path: Path) -> None:
    """Keystone's address is logged, so it must not contain a password."""
    variables = {
        "MOORAGE_AUTH": "keystone",
        "MOORAGE_KEYSTONE_URL": "https://me:S3cret@keystone.example/v3",
        "MOORAGE_KEYSTONE_PASSWORD": "x",
    }
    line = refusal(2, "config", "show", directory=tmp_path, **variables)
    assert "keystone_url" in line
    assert "S3" not in line


def test_defaults_without_settings_are_those_of_settings() -> None:
    """Opening a database without settings has the same bounds as the default settings."""
    defaults = Settings()
    known = signature(Service.start).parameters
    assert known["queue_max"].default == defaults.queue_max
    assert known["candidates_max"].default == defaults.candidates_max
    assert signature(Transactor).parameters["queue_max"].default == defaults.queue_max
    for name, default in asdict(Limits()).items():
        assert default == getattr(defaults, name)
