"""The part of OpenStack Placement's `placement.conf` that Moorage follows, as settings.

A key that has an effect in the original and none here is named in a note. `SILENT` are keys without
an effect that a client could notice. The section `[moorage]` has settings of Moorage by their own
names. Notes and errors never contain a value that may be a secret.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from moorage.config import ConfigError
from moorage.config.oslo_files import DEFAULT_GROUP, OsloFiles
from moorage.config.placement_policy import customised, policy_files

OWN = "moorage"
"""The section with Moorage's own settings."""

KEYSTONE = "keystone_authtoken"
POLICY = "oslo_policy"
PASSWORD_TYPES = frozenset({"password", "v3password"})
CACHE_SECONDS_MAX = 60

KEYSTONE_TEXTS = {
    "auth_url": "keystone_url",
    "username": "keystone_username",
    "password": "keystone_password",
    "project_name": "keystone_project",
    "cafile": "keystone_ca_file",
}
"""Keys whose values are those of settings."""

OLD_NAMES = {
    (KEYSTONE, "user_name"): "username",
    (KEYSTONE, "tenant_name"): "project_name",
    (KEYSTONE, "auth_plugin"): "auth_type",
    (DEFAULT_GROUP, "auth_strategy"): "auth_strategy",
}
"""Deprecated names of keys; the new name counts if both are there."""

DOMAINS = ("user_domain_id", "project_domain_id", "user_domain_name", "project_domain_name")

FOLLOWED = frozenset(
    {
        ("api", "auth_strategy"),
        ("cors", "allowed_origin"),
        (DEFAULT_GROUP, "debug"),
        (DEFAULT_GROUP, "use_json"),
        ("placement", "max_allocation_candidates"),
        (POLICY, "enforce_new_defaults"),
        (POLICY, "enforce_scope"),
        (POLICY, "policy_dirs"),
        (POLICY, "policy_file"),
        *((KEYSTONE, key) for key in KEYSTONE_TEXTS),
        *((KEYSTONE, key) for key in DOMAINS),
        (KEYSTONE, "auth_section"),
        (KEYSTONE, "auth_type"),
        (KEYSTONE, "http_connect_timeout"),
        (KEYSTONE, "insecure"),
        (KEYSTONE, "token_cache_time"),
        *OLD_NAMES,
    }
)
"""Keys that become settings."""

SILENT = frozenset(
    {
        *(
            (DEFAULT_GROUP, key)
            for key in (
                *("log_options", "pybasedir", "state_path", "tempdir", "transport_url"),
                *("use_journal", "use_stderr", "use_syslog", "syslog_log_facility"),
                *("default_log_levels", "logging_context_format_string", "log_date_format"),
                *("logging_default_format_string", "logging_debug_format_suffix"),
                *("logging_exception_prefix", "logging_user_identity_format", "use_eventlog"),
                *("watch_log_file", "log_color"),
            )
        ),
        *(
            (KEYSTONE, key)
            for key in (
                *("auth_version", "default_domain_id", "default_domain_name", "interface"),
                *("http_request_max_retries", "include_service_catalog", "region_name"),
                *("service_type", "www_authenticate_uri", "auth_uri"),
            )
        ),
    }
)
"""Keys without an effect that a client could notice."""

_NO_RACE = "no claim that fits is refused for a lost race, so that nothing is tried again"
_STDERR = "the log is on standard error"

REASONS = {
    ("placement", "allocation_conflict_retry_count"): _NO_RACE,
    ("placement", "randomize_allocation_candidates"): (
        "a query with a limit begins where the same query ended before"
    ),
    ("placement", "allocation_candidates_generation_strategy"): (
        "candidates are always found breadth-first"
    ),
    ("placement", "incomplete_consumer_project_id"): (
        "the project of such consumers is 00000000-0000-0000-0000-000000000000"
    ),
    ("placement", "incomplete_consumer_user_id"): (
        "the user of such consumers is 00000000-0000-0000-0000-000000000000"
    ),
    ("oslo_middleware", "enable_proxy_headers_parsing"): (
        "list the networks of your proxies in trusted_proxies in [moorage]"
    ),
    ("workarounds", "optimize_for_wide_provider_trees"): "searches are bounded in any case",
    (DEFAULT_GROUP, "log_file"): _STDERR,
    (DEFAULT_GROUP, "log_dir"): _STDERR,
    (DEFAULT_GROUP, "log_config_append"): _STDERR,
    (KEYSTONE, "certfile"): "Moorage has no certificate of its own for Keystone",
    (KEYSTONE, "keyfile"): "Moorage has no certificate of its own for Keystone",
    (KEYSTONE, "delay_auth_decision"): "requests without a valid token are refused",
    (KEYSTONE, "enforce_token_bind"): "tokens are not bound",
    (KEYSTONE, "service_token_roles"): "X-Service-Token is not read",
    (KEYSTONE, "service_token_roles_required"): "X-Service-Token is not read",
}
"""Keys with an effect in the original that have none here, and why."""

GROUP_REASONS = {
    "placement_database": "Moorage never opens it; its own database is the setting database",
    "cache": "Moorage caches in its own memory",
    "cors": "what a browser may send and read is fixed",
    "oslo_concurrency": "Moorage needs no lock files",
    "profiler": "there is no profiler",
    "osprofiler": "there is no profiler",
}
"""Sections of which other keys have no effect, and why."""

_MEMCACHE = "Moorage caches tokens in its own memory"


class PlacementConf(NamedTuple):
    """What the files mean."""

    values: dict[str, Any]
    """By setting; texts as they are in the file, not yet converted."""
    origins: dict[str, str]
    """By setting."""
    notes: list[str]
    """What the files say that has no effect."""
    refusals: dict[str, str]
    """Why a setting cannot be as the files say; no reason counts if another source has it."""


def placement_conf(paths: Sequence[str], settings: Mapping[str, str]) -> PlacementConf:
    """Read the files of the original's configuration.

    Args:
        paths: files, and folders of files; later ones count more.
        settings: the names of all settings, for the section `[moorage]`.

    Raises:
        ConfigError: a file cannot be read, a value is not valid, or a setting does not exist.
    """
    return _Reader(OsloFiles(paths), settings).read()


def policy_path(files: OsloFiles) -> str:
    """Return where the policy file is, if there is one."""
    return os.path.join(_folder(files), files.text(POLICY, "policy_file") or "policy.yaml")


def _folder(files: OsloFiles) -> str:
    return os.path.dirname(os.path.abspath(files.paths[0])) if files.paths else "."


class _Reader:
    def __init__(self, files: OsloFiles, settings: Mapping[str, str]) -> None:
        self._files = files
        self._settings = settings
        self._found = PlacementConf({}, {}, [], {})

    def read(self) -> PlacementConf:
        self._main()
        self._keystone()
        self._policy()
        for group, key in self._files.assigned():
            if group == OWN:
                self._own(key)
        self._found.notes.extend(self._unused())
        return self._found

    def _put(self, setting: str, value: Any, group: str, key: str) -> None:
        """Set a setting, unless there is no value."""
        if value is not None:
            self._found.values[setting] = value
            self._found.origins[setting] = f"{self._files.path(group, key)} [{group}] {key}"

    def _text(self, group: str, key: str) -> tuple[str | None, str, str]:
        """Return a value, under its deprecated name if need be, and where it is."""
        value = self._files.text(group, key)
        if value is None:
            for (old_group, old), new in OLD_NAMES.items():
                home = old_group if old_group == DEFAULT_GROUP else group
                older = self._files.text(home, old) if new == key else None
                if older is not None:
                    return older, home, old
        return value, group, key

    def _main(self) -> None:
        files, values = self._files, self._found.values
        # As in the original, which asks Keystone unless its configuration says otherwise.
        values["auth"] = "keystone"
        self._found.origins["auth"] = "default of placement.conf"
        strategy, group, key = self._text("api", "auth_strategy")
        if strategy not in (None, "keystone", "noauth2"):
            raise ConfigError(
                f"{files.path(group, key)} [{group}] {key}: must be keystone or noauth2"
            )
        self._put("auth", strategy, group, key)
        if files.truth(DEFAULT_GROUP, "debug"):
            self._put("log_level", "debug", DEFAULT_GROUP, "debug")
        if files.truth(DEFAULT_GROUP, "use_json"):
            self._put("log_format", "json", DEFAULT_GROUP, "use_json")
        most = files.number("placement", "max_allocation_candidates")
        if most is not None and most > 0:
            where = "placement", "max_allocation_candidates"
            self._put("candidates_max", most, *where)
        origins = files.list("cors", "allowed_origin")
        if origins:
            self._put("cors_origin", origins[0], "cors", "allowed_origin")
            if len(origins) > 1:
                self._found.notes.append(
                    f"{files.path('cors', 'allowed_origin')} [cors] allowed_origin: only the first"
                    " origin may call from a browser"
                )

    def _keystone(self) -> None:
        files = self._files
        group = files.text(KEYSTONE, "auth_section") or KEYSTONE
        kind, *where = self._text(group, "auth_type")
        if kind is not None and kind not in PASSWORD_TYPES:
            self._found.refusals["keystone_password"] = (
                f"{files.path(*where)} [{where[0]}] {where[1]}: Moorage can only be a user with a"
                " password at Keystone; set auth_type = password"
            )
        for key, setting in KEYSTONE_TEXTS.items():
            home = KEYSTONE if key == "cafile" else group
            value, *where = self._text(home, key)
            self._put(setting, value or None, *where)
        self._domain(group)
        if files.truth(KEYSTONE, "insecure") is not None:
            insecure = files.truth(KEYSTONE, "insecure")
            self._put("keystone_insecure", insecure, KEYSTONE, "insecure")
        seconds = files.number(KEYSTONE, "http_connect_timeout")
        self._put("keystone_seconds_max", seconds, KEYSTONE, "http_connect_timeout")
        cached = files.number(KEYSTONE, "token_cache_time")
        if cached is not None:
            shorter = max(0, min(cached, CACHE_SECONDS_MAX))
            self._put("keystone_cache_seconds_max", shorter, KEYSTONE, "token_cache_time")

    def _domain(self, group: str) -> None:
        """Set the domain, by its id or its name, of the user and of the project."""
        files = self._files
        for kind, setting in (("name", "keystone_domain"), ("id", "keystone_domain_id")):
            user, project = (f"{who}_domain_{kind}" for who in ("user", "project"))
            values = {files.text(group, user) or None, files.text(group, project) or None}
            values.discard(None)
            if len(values) > 1:
                self._found.refusals[setting] = (
                    f"{files.path(group, user)} [{group}] {user}: Moorage's user and its project"
                    f" must be in one domain, but {project} is another one"
                )
            for key in (user, project):
                self._put(setting, files.text(group, key) or None, group, key)

    def _policy(self) -> None:
        files = self._files
        new = files.truth(POLICY, "enforce_new_defaults")
        # The original's default since oslo.policy 4.4.
        self._found.values["policy"] = "new" if new is None or new else "default"
        where = "" if new is None else files.path(POLICY, "enforce_new_defaults")
        self._found.origins["policy"] = (
            f"{where} [{POLICY}] enforce_new_defaults" if where else "default of placement.conf"
        )
        if files.truth(POLICY, "enforce_scope") is False:
            self._found.notes.append(
                f"{files.path(POLICY, 'enforce_scope')} [{POLICY}] enforce_scope: tokens with"
                " system scope are refused in any case"
            )
        policy = policy_path(files)
        folders = [
            os.path.join(_folder(files), each)
            for each in files.list(POLICY, "policy_dirs") or ["policy.d"]
        ]
        changed = customised(policy_files(policy, folders), new is not False)
        if changed:
            self._found.refusals["policy"] = (
                f"{policy}: Moorage cannot follow these rules: {', '.join(changed)}; remove them,"
                " or set policy in [moorage] to the profile that counts instead"
            )

    def _own(self, key: str) -> None:
        if key not in self._settings:
            raise ConfigError(
                f"{self._files.path(OWN, key)} [{OWN}]: there is no setting {key!r}; remove it or"
                " correct it"
            )
        self._put(key, self._files.text(OWN, key), OWN, key)
        self._found.refusals.pop(key, None)

    def _unused(self) -> Iterator[str]:
        """Yield a line for each reason, with all keys that it is true of."""
        section = self._files.text(KEYSTONE, "auth_section") or KEYSTONE
        lines: dict[tuple[str, str, str], list[str]] = {}
        for group, key in self._files.assigned():
            same = (KEYSTONE if group == section else group), key
            if group == OWN or same in FOLLOWED or same in SILENT:
                continue
            reason = REASONS.get(same) or GROUP_REASONS.get(group)
            if reason is None and same[0] == KEYSTONE and key.startswith("memcache"):
                reason = _MEMCACHE
            path = self._files.path(group, key)
            lines.setdefault((path, group, reason or "unknown"), []).append(key)
        for (path, group, reason), keys in lines.items():
            yield f"{path} [{group}] {', '.join(keys)}: has no effect: {reason}"
