"""Rules in a policy file of OpenStack Placement that differ from its defaults.

Source: the policies of OpenStack Placement 16.
"""

import os
from collections.abc import Iterable
from typing import Any

from moorage.config import ConfigError

_ALL = "rule:admin_or_service_api"
_RESHAPE = "placement:reshaper:reshape"

RULES = {
    "admin_api": "role:admin",
    "admin_or_project_reader_or_service_api": (
        "role:admin or rule:project_reader_api or role:service"
    ),
    "admin_or_service_api": "role:admin or role:service",
    "project_reader_api": "role:reader and project_id:%(project_id)s",
    "service_api": "role:service",
    _RESHAPE: "rule:service_api",
    "placement:usages": "rule:admin_or_project_reader_or_service_api",
    **dict.fromkeys(
        (
            "placement:allocation_candidates:list",
            *(f"placement:allocations:{verb}" for verb in ("delete", "list", "manage", "update")),
            *(
                f"placement:resource_classes:{verb}"
                for verb in ("create", "delete", "list", "show", "update")
            ),
            *(
                f"placement:resource_providers:{verb}"
                for verb in ("create", "delete", "list", "show", "update", "usages")
            ),
            *(f"placement:resource_providers:aggregates:{verb}" for verb in ("list", "update")),
            "placement:resource_providers:allocations:list",
            *(
                f"placement:resource_providers:inventories:{verb}"
                for verb in ("create", "delete", "list", "show", "update")
            ),
            *(
                f"placement:resource_providers:traits:{verb}"
                for verb in ("delete", "list", "update")
            ),
            *(f"placement:traits:{verb}" for verb in ("delete", "list", "show", "update")),
        ),
        _ALL,
    ),
}
"""The default of every rule."""

_DEPRECATED = {
    "admin_or_service_api",
    "admin_or_project_reader_or_service_api",
    "project_reader_api",
    "service_api",
}
"""Rules that permit administrators, too, until `enforce_new_defaults` is set or a file has them."""


def customised(files: Iterable[str], new_defaults: bool) -> list[str]:
    """Return the names of rules that a policy file changes, sorted.

    Args:
        files: policy files, in YAML or JSON.
        new_defaults: whether `enforce_new_defaults` is set. Without it, a rule that a file repeats
            loses the exception for administrators.

    Raises:
        ConfigError: a file cannot be read, or is not a mapping of rules.
    """
    found: dict[str, Any] = {}
    for file in files:
        found.update(_rules_of(file))
    return sorted(
        name
        for name, check in found.items()
        if name in RULES
        and (_plain(check) != RULES[name] or (not new_defaults and name in _DEPRECATED))
    )


def policy_files(policy_file: str, folders: Iterable[str]) -> list[str]:
    """Return the policy file, if it exists, and all files in the folders."""
    found = [policy_file] if os.path.isfile(policy_file) else []
    for folder in folders:
        if os.path.isdir(folder):
            names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
            found += [os.path.join(folder, name) for name in names]
    return found


def _rules_of(file: str) -> dict[str, Any]:
    import yaml  # deferred: most servers have no such file

    try:
        with open(file, encoding="utf-8") as stream:
            rules = yaml.safe_load(stream)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigError(f"policy file {file}: cannot be read: {reason}") from None
    except yaml.YAMLError:
        raise ConfigError(f"policy file {file}: is not YAML") from None
    if rules is None:
        return {}
    if not isinstance(rules, dict):
        raise ConfigError(f"policy file {file}: must map names of rules to checks")
    return rules


def _plain(check: Any) -> Any:
    """Return a check with single spaces and without brackets around all of it."""
    if not isinstance(check, str):
        return check
    words = " ".join(check.split())
    while words.startswith("(") and words.endswith(")") and ")" not in words[1:-1]:
        words = words[1:-1].strip()
    return words
