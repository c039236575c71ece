"""Settings that depend on each other: invalid combinations are refused."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from moorage.config.addresses import address_parse, networks_parse
from moorage.config.errors import ConfigError
from moorage.config.prefixes import prefix_parse
from moorage.store.addresses import has_password, is_postgres

if TYPE_CHECKING:
    from moorage.config import Settings


def check(settings: "Settings") -> None:
    """Refuse invalid combinations of settings. Raises ConfigError."""
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


def _check_database(settings: "Settings") -> None:
    if settings.database_password_file is None:
        return
    if not is_postgres(settings.database):
        raise ConfigError("database_password_file: is for a database on PostgreSQL")
    if has_password(settings.database):
        raise ConfigError(
            "database and database_password_file: both have a password; take it out of database"
        )
