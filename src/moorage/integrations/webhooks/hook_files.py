"""Reads the file of hooks: TOML, with a table for each hook."""

import ipaddress
import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from moorage.client.transport import Transport
from moorage.integrations.webhooks.hooks import LEASE_NAMES, Hook
from moorage.integrations.webhooks.secret_values import secret_of
from moorage.integrations.webhooks.templates import NAME as NAME_IN_BRACES
from moorage.integrations.webhooks.templates import leaves, names_in

NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")
"""The name of a hook: a value of labels, and of a file."""

FILE_BYTES_MAX = 1 << 20
METHODS = ("POST", "PUT")
EVENTS = ("granted", "ended")
KEYS: dict[str, Any] = {
    **{"url": str, "events": list, "pools": list, "owners": list, "attend": bool, "method": str},
    **{"headers": dict, "body": (dict, list, str), "secrets": dict, "signed_with": str},
    **{"insecure": bool, "ca_file": str},
}
OWN_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature", "content-length", "host")


class HooksError(Exception):
    """A file of hooks is not valid; the message says why."""


def hooks_in(path: str) -> list[Hook]:
    """Return the hooks of a file. Raises HooksError, OSError."""
    with open(path, "rb") as file:
        raw = file.read(FILE_BYTES_MAX)
    try:
        tables = tomllib.loads(raw.decode())
    except ValueError as error:  # also TOMLDecodeError and UnicodeDecodeError
        raise HooksError(f"{path} is not TOML: {error}") from None
    if not tables:
        raise HooksError(f"{path} has no hooks")
    hooks = []
    for name, table in tables.items():
        try:
            hooks.append(_hook(name, table))
        except ValueError as error:
            raise HooksError(f"{path}: hook {name}: {error}") from None
    return hooks


def _hook(name: str, table: Any) -> Hook:
    """Return a hook. Raises ValueError."""
    if not NAME.fullmatch(name):
        raise ValueError("its name must have 1 to 63 letters, digits, '_' and '-'")
    if not isinstance(table, Mapping):
        raise ValueError("it is not a table: write [NAME] above its lines")
    for key, value in table.items():
        if key not in KEYS:
            raise ValueError(f"{key} is not known: there are {', '.join(KEYS)}")
        if not isinstance(value, KEYS[key]):
            raise ValueError(f"{key} has a value of another kind")
    found = dict(table)
    _check_address(found.get("url", ""), insecure=found.pop("insecure", False))
    for key in ("events", "pools", "owners"):
        if not all(isinstance(one, str) for one in found.get(key, ())):
            raise ValueError(f"{key} must be texts")
    if not set(found.get("events", EVENTS)) <= set(EVENTS):
        raise ValueError(f"events are {' and '.join(EVENTS)}")
    if found.get("attend") and "granted" not in found.get("events", EVENTS):
        raise ValueError("attend needs the event granted, which is to be posted")
    if found.get("method", "POST") not in METHODS:
        raise ValueError(f"method is {' or '.join(METHODS)}")
    _check_authority(found["url"], found.get("ca_file"))
    _check_body(found.get("body"))
    found["secrets"] = {key: secret_of(one) for key, one in found.get("secrets", {}).items()}
    _check_names(found)
    return Hook(
        name=name,
        **{
            **found,
            "events": frozenset(found.get("events", EVENTS)),
            "pools": tuple(found.get("pools", ())),
            "owners": tuple(found.get("owners", ())),
        },
    )


def _check_address(url: str, *, insecure: bool) -> None:
    """Check where to post. Raises ValueError."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https"):
        raise ValueError("url must be the address of its receiver, https://HOST/PATH")
    if "@" in parts.netloc:
        raise ValueError("url has a user or a password: send it in headers, of secrets")
    if "{" in parts.netloc:
        raise ValueError("url: names in braces may be only in its path and its query")
    if not all("!" <= character <= "~" for character in url):
        raise ValueError("url must have only visible ASCII characters")
    if leaves(NAME_IN_BRACES.sub("x", parts.path)):
        raise ValueError("url must have no '.' or '..' as a part of its path")
    if parts.scheme == "http" and not _is_loopback(host) and not insecure:
        raise ValueError(
            "url begins with http://, so that others may read and change what is sent: use https://,"
            " or set insecure = true"
        )


def _check_body(body: Any) -> None:
    """Check that a body can be sent. Raises ValueError."""
    try:
        json.dumps(body, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("body has a time, inf or nan, which JSON has not: write text") from None


def _check_authority(url: str, ca_file: str | None) -> None:
    """Check whom to trust. Raises ValueError."""
    try:
        Transport(
            urlsplit(url)._replace(path="", query="", fragment="").geturl(), None, ca_file=ca_file
        )
    except OSError as error:
        raise ValueError(f"cannot read {ca_file}: {error.strerror}") from None


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_names(found: Mapping[str, Any]) -> None:
    """Check what the templates name. Raises ValueError."""
    secrets = found["secrets"]
    if found.get("signed_with") is not None and found["signed_with"] not in secrets:
        raise ValueError(f"signed_with names no secret: {found['signed_with']}")
    for header, text in found.get("headers", {}).items():
        if header.lower() in OWN_HEADERS or not re.fullmatch(r"[A-Za-z0-9-]+", header):
            raise ValueError(f"the header {header} cannot be set")
        if not isinstance(text, str) or not all(" " <= one <= "~" for one in text):
            raise ValueError(f"the header {header} must be one line of ASCII characters")
        for name in names_in(text):
            # Who asks for a lease chooses its labels and its key, and must not add headers.
            if not name.startswith("secrets."):
                raise ValueError(f"the header {header} names {name}: headers may name secrets only")
    for name in names_in([found.get(key) for key in ("url", "headers", "body")]):
        kind, dot, rest = name.partition(".")
        known = name in LEASE_NAMES or (kind == "labels" and dot)
        if not known and not (kind == "secrets" and rest in secrets):
            raise ValueError(f"there is no {name} to fill in")
