"""All settings of the process: meaning, default, bounds, and the source of each value.

Sources in order of increasing priority: the default, OpenStack Placement's `placement.conf`,
`moorage.toml`, the environment (`MOORAGE_` and the name in capitals), the command-line option.
`check` refuses settings that contradict each other, `check_addresses` settings for an address that
is not served.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from moorage.config import ConfigError
from moorage.config.addresses import address_parse, networks_parse
from moorage.config.prefixes import prefix_parse
from moorage.core.clock import SECOND
from moorage.core.fleet.ttl import TTL_RANGE
from moorage.core.limits import (
    BODY_BYTES_MAX,
    BULK_BYTES_MAX,
    CANDIDATES_MAX,
    CHANGES_QUEUED_MAX,
    LEASES_KEPT_HOURS,
    QUERY_BYTES_MAX,
    QUERY_PARAMETERS_MAX,
    TOKEN_CACHE_MAX,
)
from moorage.ownership import UntrustedError, read_own
from moorage.store.addresses import has_password, is_postgres, with_password

if TYPE_CHECKING:
    from moorage.config.placement_conf import PlacementConf

FILE_NAME = "moorage.toml"
PREFIX = "MOORAGE_"
PLACEMENT_CONF = f"{PREFIX}PLACEMENT_CONF"
"""The variable with the paths of Placement's configuration, separated by colons."""

SECRET_SETTINGS = frozenset({"keystone_password"})
"""Settings whose values are never shown."""

Bytes = Annotated[int, Meta(ge=1, le=1 << 40)]
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Days = Annotated[int, Meta(ge=1, le=36_500)]
Hours = Annotated[int, Meta(ge=24, le=8_784)]
"""At least the time for which keys are promised to be remembered, at most a year."""
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
FleetSeconds = Annotated[float, Meta(ge=10, le=3_600)]
"""Not less than 10: processes exchange signs of life every 5 seconds."""


def _about(text: str) -> Meta:
    return Meta(description=text)


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings; each field's description is its documentation."""

    listen: Annotated[str, _about("HOST:PORT to listen on; port 0 chooses a free port.")] = (
        "127.0.0.1:8778"
    )
    database: Annotated[
        str, _about("Address of the database: sqlite:///PATH or postgresql://USER@HOST/NAME.")
    ] = "sqlite:///moorage.sqlite"
    epoch_file: Annotated[
        str | None,
        _about(
            "File that records the newest revision of a PostgreSQL database, to detect restores."
        ),
    ] = None
    database_password_file: Annotated[
        str | None, _about("File with the password of a PostgreSQL database.")
    ] = None
    backup_directory: Annotated[
        str | None, _about("Folder for backups that clients request over HTTP; none by default.")
    ] = None
    auth: Annotated[
        Literal["token", "noauth2", "keystone"],
        _about(
            "How callers authenticate: own tokens, Placement's test scheme, or Keystone's tokens."
        ),
    ] = "token"
    policy: Annotated[
        Literal["default", "new", "open"],
        _about("Placement's policy profile: the usual rules, only the new defaults, or open."),
    ] = "default"
    cors_origin: Annotated[
        str | None, _about("The web origin that may call from a browser (CORS).")
    ] = None
    ui: Annotated[bool, _about("Serve the dashboard at /ui.")] = True
    allowed_hosts: Annotated[
        tuple[str, ...],
        _about(
            "Host names that clients may use besides localhost and the listen host; * permits any."
        ),
    ] = ()
    insecure_noauth2: Annotated[
        bool, _about("Permit noauth2 on an address that others can reach.")
    ] = False
    insecure_boskos: Annotated[
        bool,
        _about("Permit boskos_listen without a password on an address that others can reach."),
    ] = False
    insecure_agents: Annotated[
        bool, _about("Permit agents on unencrypted connections from other hosts.")
    ] = False
    trusted_proxies: Annotated[
        tuple[str, ...],
        _about("Networks of proxies whose X-Forwarded-For, -Proto and -Prefix count."),
    ] = ()
    path_prefix: Annotated[
        str | None,
        _about("Path prefix of all addresses, such as /placement; requests may omit it."),
    ] = None
    testing: Annotated[
        bool, _about("Mount the test-only reset; needs noauth2 and a loopback address.")
    ] = False
    tls_cert: Annotated[str | None, _about("Certificate chain (PEM) to serve HTTPS with.")] = None
    tls_key: Annotated[str | None, _about("Private key (PEM) of tls_cert.")] = None
    log_format: Annotated[Literal["line", "json"], _about("Format of log lines.")] = "line"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], _about("Lowest severity that is logged.")
    ] = "info"
    access_log: Annotated[
        bool, _about("Log one line for every answered request, except agents' signs of life.")
    ] = True
    openstack_metrics_max: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Most inventories in metrics named as openstack-exporter's; 0: none.",
        ),
    ] = 0

    boskos_listen: Annotated[
        str | None,
        _about("HOST:PORT for clients of Boskos and of the lease proxy; none by default."),
    ] = None
    boskos_config: Annotated[
        str | None, _about("Boskos' configuration file (YAML); it is reloaded when it changes.")
    ] = None
    boskos_compat: Annotated[
        Literal["safe", "strict"],
        _about("'safe' fixes Boskos' harmful behaviour; 'strict' reproduces it exactly."),
    ] = "safe"
    boskos_password_file: Annotated[
        str | None,
        _about("File with lines USER:PASSWORD; clients must send one of these (HTTP Basic)."),
    ] = None
    boskos_native_leases: Annotated[
        bool, _about("Allow clients of Boskos to release, update and reset native leases, too.")
    ] = False
    lease_proxy_seconds_max: Annotated[
        Seconds, _about("Seconds that an acquire request of the lease proxy waits.")
    ] = 7_200.0

    keystone_url: Annotated[
        str | None, _about("Keystone's v3 address, e.g. https://keystone.example/v3.")
    ] = None
    keystone_username: Annotated[str, _about("User that validates tokens at Keystone.")] = (
        "placement"
    )
    keystone_password: Annotated[str | None, _about("Password of keystone_username.")] = None
    keystone_project: Annotated[str, _about("Project in which keystone_username acts.")] = "service"
    keystone_domain: Annotated[
        str, _about("Domain name of keystone_username and keystone_project.")
    ] = "Default"
    keystone_domain_id: Annotated[
        str | None, _about("Id of that domain, if its name is not known; counts instead.")
    ] = None
    keystone_admin_project: Annotated[
        str,
        _about("Name or id of the project whose admins administer Moorage; * permits any."),
    ] = "admin"
    keystone_admin_domain: Annotated[
        str, _about("Name or id of the domain of keystone_admin_project.")
    ] = "Default"
    keystone_ca_file: Annotated[
        str | None, _about("Certificates (PEM) to verify Keystone with; the system's by default.")
    ] = None
    keystone_insecure: Annotated[
        bool, _about("Do not verify Keystone's certificate; anyone in between could grant access.")
    ] = False
    keystone_cache_seconds_max: Annotated[
        float, Meta(ge=0, le=60, description="Seconds to cache a validated token, at most 60.")
    ] = 60.0
    keystone_seconds_max: Annotated[Seconds, _about("Seconds to wait for Keystone.")] = 10.0

    body_bytes_max: Annotated[Bytes, _about("Most bytes in the body of a request.")] = (
        BODY_BYTES_MAX
    )
    bulk_bytes_max: Annotated[
        Bytes, _about("Most bytes in the body of a reshape or bulk request.")
    ] = BULK_BYTES_MAX
    query_bytes_max: Annotated[Bytes, _about("Most bytes in a query string.")] = QUERY_BYTES_MAX
    query_parameters_max: Annotated[Count, _about("Most parameters in a query string.")] = (
        QUERY_PARAMETERS_MAX
    )
    header_bytes_max: Annotated[
        Bytes, _about("Most bytes in the address and headers of a request together.")
    ] = 64 << 10
    header_count_max: Annotated[Count, _about("Most headers in a request.")] = 100
    header_seconds_max: Annotated[
        Seconds, _about("Seconds a connection may take to send the headers of a request.")
    ] = 10.0
    body_seconds_max: Annotated[Seconds, _about("Seconds a body may take to arrive.")] = 60.0
    idle_seconds_max: Annotated[
        Seconds, _about("Seconds a connection may stay open between two requests.")
    ] = 75.0
    connections_max: Annotated[Count, _about("Most open connections; more are refused.")] = 12_000
    connections_per_address_max: Annotated[
        Count,
        _about("Most open connections from one address; loopback and trusted_proxies are exempt."),
    ] = 2_000
    queue_max: Annotated[Count, _about("Most change requests in the queue; more are refused.")] = (
        CHANGES_QUEUED_MAX
    )
    candidates_max: Annotated[
        Count,
        _about("Most allocation candidates in one response, also if the client sets no limit."),
    ] = CANDIDATES_MAX
    token_cache_max: Annotated[
        Count, _about("Most tokens cached in memory: as many as there are agents, or more.")
    ] = TOKEN_CACHE_MAX
    fleet_ttl_min: Annotated[
        FleetSeconds, _about("Seconds of silence after which an agent of a small fleet is late.")
    ] = TTL_RANGE.least / SECOND
    fleet_ttl_max: Annotated[
        FleetSeconds,
        _about("The same for a large fleet: 1 second for each 50 agents, up to this many."),
    ] = TTL_RANGE.most / SECOND
    changes_max: Annotated[
        Count, _about("Most change rows to keep for followers, whatever their age.")
    ] = 10_000_000
    changes_bytes_max: Annotated[
        Count, _about("Most bytes of change rows to keep, whatever their age.")
    ] = 4 << 30
    ended_leases_hours: Annotated[
        Hours, _about("Hours to keep ended leases and their keys, for lists, reports and replays.")
    ] = LEASES_KEPT_HOURS
    ended_leases_max: Annotated[
        Count, _about("Most ended leases to keep; those of the last hour are kept in any case.")
    ] = 10_000_000
    ended_leases_bytes_max: Annotated[
        Count,
        _about("Most bytes of ended leases to keep; those of the last hour are kept in any case."),
    ] = 8 << 30
    audit_days: Annotated[Days, _about("Days to keep audit rows, and what reshapes did.")] = 400
    stop_seconds_max: Annotated[
        Annotated[float, Meta(gt=0, le=9)],
        _about("Seconds that accepted requests may take to finish when the server stops."),
    ] = 7.0


def _descriptions() -> dict[str, str]:
    found = {}
    for name, hint in Settings.__annotations__.items():
        texts = [meta.description for meta in hint.__metadata__ if isinstance(meta, Meta)]
        found[name] = next(text for text in texts if text)
    return found


FIELDS: dict[str, str] = _descriptions()
"""The name and the meaning of every setting."""

LISTS = frozenset({"allowed_hosts", "trusted_proxies"})
"""Settings that are lists: comma-separated in the environment and in options."""


DEFAULT = "default"
"""The source of a value that nobody has set."""


class Loaded(NamedTuple):
    """The effective settings and, for each, the source of its value."""

    settings: Settings
    origins: dict[str, str]
    notes: tuple[str, ...] = ()
    """One line for each part of Placement's configuration that has no effect."""

    def is_chosen(self, name: str) -> bool:
        """Return whether somebody has set it, if only to the default."""
        return self.origins[name] != DEFAULT


def load(
    options: Mapping[str, Any],
    environ: Mapping[str, str] = os.environ,
    file: str | None = None,
    placement: Sequence[str] = (),
) -> Loaded:
    """Merge all sources of settings.

    Args:
        options: from the command line; None means not given.
        environ: the environment.
        file: a settings file that must exist; by default `moorage.toml`, if it exists.
        placement: files and folders of Placement's configuration; by default those that the
            environment names.

    Raises:
        ConfigError: a source cannot be read, or a value is not valid.
    """
    values: dict[str, Any] = {}
    origins = dict.fromkeys(FIELDS, DEFAULT)
    paths = placement or [path for path in environ.get(PLACEMENT_CONF, "").split(":") if path]
    theirs = _placement_values(paths, values, origins)
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
    if theirs is not None:
        _refuse(theirs, values, origins)
    settings = Settings(**values)
    check(settings)
    return Loaded(settings, origins, () if theirs is None else tuple(theirs.notes))


def _refuse(theirs: "PlacementConf", values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    """Raise ConfigError if a setting that counts cannot be as Placement's configuration says."""
    for name, reason in theirs.refusals.items():
        asks = values["auth"] == "keystone" or not name.startswith("keystone_")
        if asks and origins[name] in (DEFAULT, theirs.origins.get(name)):
            raise ConfigError(reason)


def _placement_values(
    paths: Sequence[str], values: dict[str, Any], origins: dict[str, str]
) -> "PlacementConf | None":
    """Add the settings of Placement's configuration, and return all that it means."""
    if not paths:
        return None
    from moorage.config.placement_conf import placement_conf  # deferred: rarely used

    found = placement_conf(paths, FIELDS)
    for name, value in found.values.items():
        origins[name] = found.origins[name]
        values[name] = _converted(name, value, origins[name], strict=False)
    return found


def _file_values(file: str | None) -> dict[str, Any]:
    path = file or FILE_NAME
    try:
        content = _content(file)
    except OSError as error:
        if file is None and isinstance(error, FileNotFoundError):
            return {}
        raise ConfigError(f"file {path}: cannot be read: {error.strerror}") from None
    except UntrustedError as error:
        raise ConfigError(str(error)) from None
    import tomllib  # deferred: most commands find no file

    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"file {path}: is not TOML: {error}") from None


def _content(file: str | None) -> bytes:
    if file is None:
        return read_own(
            FILE_NAME, f"if you trust this file, name it with --config or {PREFIX}CONFIG"
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
        raise ConfigError(f"{origin}: {name} cannot be {shown}: {_said(error)}{choices}") from None


def _said(error: msgspec.ValidationError) -> str:
    """Return what a value must be, in the words of people."""
    text = str(error)
    for kind, word in (("float", "a number"), ("int", "a whole number"), ("bool", "true or false")):
        text = text.replace(f"Expected `{kind}`", f"it must be {word}")
    return re.sub(r", got `.*`$", "", text)


def _choices(allowed: tuple[Any, ...]) -> bool:
    return bool(allowed) and all(isinstance(choice, str) for choice in allowed)


def database_address(settings: Settings) -> str:
    """Return the address of the database with the password from its file; never show the result.

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


def check(settings: Settings) -> None:
    """Refuse invalid combinations of settings. Raises ConfigError."""
    address = address_parse(settings.listen)
    if settings.auth == "noauth2" and not address.loopback and not settings.insecure_noauth2:
        raise ConfigError(
            f"auth: noauth2 lets anyone in, so it is refused on {address.host}; "
            "listen on 127.0.0.1, choose --auth token, or add --insecure-noauth2"
        )
    if settings.epoch_file is not None and settings.database.startswith("sqlite:"):
        raise ConfigError(
            "epoch_file: is only for PostgreSQL; with SQLite, PATH.lock records the newest revision"
        )
    networks_parse(settings.trusted_proxies)
    prefix_parse(settings.path_prefix)
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
    if settings.fleet_ttl_min > settings.fleet_ttl_max:
        raise ConfigError("fleet_ttl_min: must not be larger than fleet_ttl_max")
    _check_database(settings)


def check_addresses(settings: Settings) -> None:
    """Refuse settings without the address that they are for. Raises ConfigError.

    `settings` has the addresses of the sockets that systemd passes, which only a server knows.
    """
    if settings.boskos_config is not None and settings.boskos_listen is None:
        raise ConfigError(
            "boskos_config: needs boskos_listen, the address to serve clients of Boskos on"
        )
    if settings.boskos_password_file is not None and settings.boskos_listen is None:
        raise ConfigError(
            "boskos_password_file: needs boskos_listen, the address that the passwords protect"
        )


def _check_database(settings: Settings) -> None:
    if settings.database_password_file is None:
        return
    if not is_postgres(settings.database):
        raise ConfigError("database_password_file: is for a database on PostgreSQL")
    if has_password(settings.database):
        raise ConfigError(
            "database and database_password_file: both have a password; remove the password from"
            " database"
        )
