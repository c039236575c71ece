"""Every setting of the process: meaning, default, bounds, and where its value came from.

A value is taken from, in rising order: the default, `moorage.toml`, the environment (`MOORAGE_` and
the name in capitals), the option of the command line. `addresses.py` reads what settings say of
hosts and networks, `errors.py` is the refusal of a wrong setting.
"""

import os
import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from moorage.config.addresses import address_parse, networks_parse
from moorage.config.errors import ConfigError
from moorage.store.addresses import has_password, is_postgres, with_password
from moorage.store.ownership import UntrustedError, read_own

FILE_NAME = "moorage.toml"
PREFIX = "MOORAGE_"
SECRET_SETTINGS = frozenset({"keystone_password"})
"""Settings whose values are never shown."""

Bytes = Annotated[int, Meta(ge=1, le=1 << 40)]
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Days = Annotated[int, Meta(ge=1, le=36_500)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]


def _about(text: str) -> Meta:
    return Meta(description=text)


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings; each field's description is its documentation."""

    listen: Annotated[str, _about("HOST:PORT to serve on; port 0 takes a free one.")] = (
        "127.0.0.1:8778"
    )
    database: Annotated[
        str, _about("Where the ledger is kept: sqlite:///PATH or postgresql://USER@HOST/NAME.")
    ] = "sqlite:///moorage.sqlite"
    epoch_file: Annotated[
        str | None,
        _about("File that records the newest revision of a PostgreSQL, to notice restores."),
    ] = None
    database_password_file: Annotated[
        str | None, _about("File with the password for a database on PostgreSQL.")
    ] = None
    backup_directory: Annotated[
        str | None, _about("Folder for backups that clients request over HTTP; none by default.")
    ] = None
    auth: Annotated[
        Literal["token", "noauth2", "keystone"],
        _about("Who may call: own tokens, Placement's test scheme, or Keystone's tokens."),
    ] = "token"
    policy: Annotated[
        Literal["default", "new", "open"],
        _about("Placement's policy profile: the usual rules, only the new defaults, or open."),
    ] = "default"
    cors_origin: Annotated[
        str | None, _about("The one web origin that may call from a browser (CORS).")
    ] = None
    allowed_hosts: Annotated[
        tuple[str, ...],
        _about("Host names clients may address besides localhost and the listen host; * is any."),
    ] = ()
    insecure_noauth2: Annotated[
        bool, _about("Permit noauth2 on an address that others can reach.")
    ] = False
    insecure_boskos: Annotated[
        bool,
        _about("Permit boskos_listen without a password on an address that others can reach."),
    ] = False
    insecure: Annotated[
        bool, _about("Deprecated: insecure_noauth2 and insecure_boskos together.")
    ] = False
    trusted_proxies: Annotated[
        tuple[str, ...],
        _about("Networks of proxies whose X-Forwarded-For and X-Forwarded-Proto count."),
    ] = ()
    testing: Annotated[
        bool, _about("Mount the test-only reset; needs noauth2 and a loopback address.")
    ] = False
    tls_cert: Annotated[str | None, _about("Certificate chain (PEM) to serve HTTPS with.")] = None
    tls_key: Annotated[str | None, _about("Private key (PEM) of tls_cert.")] = None
    log_format: Annotated[Literal["line", "json"], _about("How log lines are written.")] = "line"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], _about("The least severity that is logged.")
    ] = "info"
    access_log: Annotated[bool, _about("Log one line for every request answered.")] = True

    boskos_listen: Annotated[
        str | None,
        _about("HOST:PORT for clients of Boskos and of the lease proxy; none by default."),
    ] = None
    boskos_config: Annotated[
        str | None, _about("Boskos' configuration file (YAML); read again when it changes.")
    ] = None
    boskos_compat: Annotated[
        Literal["safe", "strict"],
        _about("Whether what does harm in Boskos is done better, or exactly as it does it."),
    ] = "safe"
    boskos_password_file: Annotated[
        str | None,
        _about("File with lines USER:PASSWORD; clients must send one of them (HTTP Basic)."),
    ] = None
    boskos_native_leases: Annotated[
        bool, _about("Let clients of Boskos release, update and reset native leases, too.")
    ] = False
    lease_proxy_seconds_max: Annotated[
        Seconds, _about("Seconds that an acquire of the lease proxy waits.")
    ] = 7_200.0

    keystone_url: Annotated[
        str | None, _about("Keystone's v3 address, e.g. https://keystone.example/v3.")
    ] = None
    keystone_username: Annotated[str, _about("The user that validates tokens at Keystone.")] = (
        "placement"
    )
    keystone_password: Annotated[str | None, _about("The password of keystone_username.")] = None
    keystone_project: Annotated[str, _about("The project keystone_username acts in.")] = "service"
    keystone_domain: Annotated[
        str, _about("The domain name of keystone_username and keystone_project.")
    ] = "Default"
    keystone_admin_project: Annotated[
        str,
        _about("The project, by name or id, whose admins administer Moorage; * is any."),
    ] = "admin"
    keystone_admin_domain: Annotated[
        str, _about("The domain, by name or id, of keystone_admin_project.")
    ] = "Default"
    keystone_ca_file: Annotated[
        str | None, _about("Certificates (PEM) to verify Keystone with; the system's by default.")
    ] = None
    keystone_cache_seconds_max: Annotated[
        float, Meta(ge=0, le=60, description="Seconds a validated token is believed, at most 60.")
    ] = 60.0
    keystone_seconds_max: Annotated[Seconds, _about("Seconds to wait for Keystone.")] = 10.0

    body_bytes_max: Annotated[Bytes, _about("Bytes in a request's body.")] = 1 << 20
    bulk_bytes_max: Annotated[Bytes, _about("Bytes in the body of a reshape or bulk request.")] = (
        32 << 20
    )
    query_bytes_max: Annotated[Bytes, _about("Bytes in a query string.")] = 60_000
    query_parameters_max: Annotated[Count, _about("Parameters in a query string.")] = 1_000
    header_bytes_max: Annotated[
        Bytes, _about("Bytes in a request's address and headers together.")
    ] = 64 << 10
    header_count_max: Annotated[Count, _about("Headers in one request.")] = 100
    header_seconds_max: Annotated[
        Seconds, _about("Seconds a connection may take to send a request's headers.")
    ] = 10.0
    body_seconds_max: Annotated[Seconds, _about("Seconds a body may take to arrive.")] = 60.0
    idle_seconds_max: Annotated[
        Seconds, _about("Seconds a connection may stay open between two requests.")
    ] = 75.0
    connections_max: Annotated[Count, _about("Connections open at once; more are turned away.")] = (
        12_000
    )
    connections_per_address_max: Annotated[
        Count, _about("Connections from one address; loopback and trusted_proxies are exempt.")
    ] = 2_000
    queue_max: Annotated[Count, _about("Changes that may wait for their turn at once.")] = 4_096
    candidates_max: Annotated[
        Count, _about("Allocation candidates in one answer, also where the client gives no limit.")
    ] = 100_000
    changes_max: Annotated[
        Count, _about("Change rows that are kept for followers, however young they are.")
    ] = 10_000_000
    audit_days: Annotated[Days, _about("Days for which audit rows are kept.")] = 400
    stop_seconds_max: Annotated[
        Annotated[float, Meta(gt=0, le=9)],
        _about("Seconds that accepted requests are given to finish when the server stops."),
    ] = 7.0


def _descriptions() -> dict[str, str]:
    found = {}
    for name, hint in get_type_hints(Settings, include_extras=True).items():
        texts = [meta.description for meta in hint.__metadata__ if isinstance(meta, Meta)]
        found[name] = next(text for text in texts if text)
    return found


FIELDS: dict[str, str] = _descriptions()
"""Every setting's name and what it means."""

LISTS = frozenset({"allowed_hosts", "trusted_proxies"})
"""Settings that are lists: comma-separated in the environment and in options."""


class Loaded(NamedTuple):
    """The settings in force and, for each, where its value came from."""

    settings: Settings
    origins: dict[str, str]


def load(
    options: Mapping[str, Any],
    environ: Mapping[str, str] = os.environ,
    file: str | None = None,
) -> Loaded:
    """Join all sources of settings.

    Args:
        options: given on the command line; None means not given.
        environ: the environment.
        file: a settings file that must exist; by default `moorage.toml`, if it is there.

    Raises:
        ConfigError: a source cannot be read, or a value does not fit its setting.
    """
    values: dict[str, Any] = {}
    origins = dict.fromkeys(FIELDS, "default")
    for name, value in _file_values(file or environ.get(f"{PREFIX}CONFIG")).items():
        origin = f"file {file or environ.get(f'{PREFIX}CONFIG') or FILE_NAME}"
        if name not in FIELDS:
            raise ConfigError(f"{origin}: there is no setting {name!r}; remove it or correct it")
        values[name], origins[name] = _converted(name, value, origin, strict=True), origin
    for name in FIELDS:
        variable = PREFIX + name.upper()
        if variable in environ:
            origins[name] = f"environment {variable}"
            values[name] = _converted(name, environ[variable], origins[name], strict=False)
        if options.get(name) is not None:
            origins[name] = f"option --{name.replace('_', '-')}"
            if name == "database" and has_password(str(options[name])):
                raise ConfigError(
                    "option --database: must not contain a password, because every user of the"
                    " machine could see it; use database_password_file, or put the address into"
                    f" {PREFIX}DATABASE"
                )
            values[name] = _converted(name, options[name], origins[name], strict=False)
    if values.get("insecure"):
        values = {"insecure_noauth2": True, "insecure_boskos": True, **values}
    settings = Settings(**values)
    _check(settings)
    return Loaded(settings, origins)


def _file_values(file: str | None) -> dict[str, Any]:
    path = file or FILE_NAME
    try:
        return tomllib.loads(_content(file).decode())
    except OSError as error:
        if file is None and isinstance(error, FileNotFoundError):
            return {}
        raise ConfigError(f"file {path}: cannot be read: {error.strerror}") from None
    except UntrustedError as error:
        raise ConfigError(str(error)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"file {path}: is not TOML: {error}") from None


def _content(file: str | None) -> bytes:
    if file is None:
        return read_own(
            FILE_NAME,
            "it decides where tokens are sent",
            f"if you trust it, name it with --config or {PREFIX}CONFIG",
        )
    with open(file, "rb") as stream:
        return stream.read()


def _converted(name: str, value: Any, origin: str, strict: bool) -> Any:
    if isinstance(value, str) and name in LISTS:
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        return msgspec.convert(value, Settings.__annotations__[name], strict=strict)
    except msgspec.ValidationError as error:
        shown = "what is given" if name in SECRET_SETTINGS else repr(value)
        allowed = get_args(get_args(Settings.__annotations__[name])[0])
        choices = f" (one of {', '.join(allowed)})" if _choices(allowed) else ""
        raise ConfigError(f"{origin}: {name} cannot be {shown}: {error}{choices}") from None


def _choices(allowed: tuple[Any, ...]) -> bool:
    return bool(allowed) and all(isinstance(choice, str) for choice in allowed)


def _check(settings: Settings) -> None:
    """Refuse settings that do not go together."""
    address = address_parse(settings.listen)
    if settings.auth == "noauth2" and not address.loopback and not settings.insecure_noauth2:
        raise ConfigError(
            f"auth: noauth2 lets anyone in, so it is refused on {address.host}; "
            "listen on 127.0.0.1, choose --auth token, or add --insecure-noauth2"
        )
    if settings.epoch_file is not None and settings.database.startswith("sqlite:"):
        raise ConfigError("epoch_file: is for PostgreSQL; SQLite remembers it in PATH.lock")
    if settings.boskos_config is not None and settings.boskos_listen is None:
        raise ConfigError("boskos_config: needs boskos_listen, the address to serve it on")
    if settings.boskos_password_file is not None and settings.boskos_listen is None:
        raise ConfigError("boskos_password_file: needs boskos_listen, the address it is for")
    networks_parse(settings.trusted_proxies, "trusted_proxies")
    if settings.boskos_listen is not None:
        boskos = address_parse(settings.boskos_listen, "boskos_listen")
        free = settings.insecure_boskos or settings.boskos_password_file is not None
        if not boskos.loopback and not free:
            raise ConfigError(
                f"boskos_listen: Boskos does not authenticate its clients, so {boskos.host} is"
                " refused; listen on 127.0.0.1, set boskos_password_file, or add --insecure-boskos"
            )
    if settings.testing and (settings.auth != "noauth2" or not address.loopback):
        raise ConfigError("testing: needs --auth noauth2 and a loopback address in --listen")
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise ConfigError("tls_cert and tls_key go together: give both or neither")
    if settings.auth == "keystone":
        if not settings.keystone_url or not settings.keystone_password:
            raise ConfigError("auth: keystone needs keystone_url and keystone_password")
        if urlsplit(settings.keystone_url).scheme not in ("http", "https"):
            raise ConfigError("keystone_url: must begin with http:// or https://")
        if "@" in urlsplit(settings.keystone_url).netloc:
            raise ConfigError(
                "keystone_url: must not name a user or a password, which would be logged;"
                " use keystone_username and keystone_password"
            )
    if settings.query_bytes_max > settings.header_bytes_max:
        raise ConfigError("query_bytes_max: must not be larger than header_bytes_max")
    _check_database(settings)


def _check_database(settings: Settings) -> None:
    if settings.database_password_file is None:
        return
    if not is_postgres(settings.database):
        raise ConfigError("database_password_file: is for a database on PostgreSQL")
    if has_password(settings.database):
        raise ConfigError(
            "database and database_password_file: both have a password; take it out of database"
        )


def database_address(settings: Settings) -> str:
    """Return the address of the database with the password of its file, never to be shown.

    Raises:
        ConfigError: the file cannot be read, or is empty.
    """
    file = settings.database_password_file
    if file is None:
        return settings.database
    try:
        with open(file, encoding="utf-8") as stream:
            password = stream.read().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigError(f"database_password_file: cannot read {file}: {reason}") from None
    if not password:
        raise ConfigError(f"database_password_file: {file} is empty")
    return with_password(settings.database, password)
