"""What `moorage gate` and the commands of `moorage ironic` share: addresses, tokens, rules."""

import functools
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.output import USAGE, Failure
from moorage.cli.support.provisioning import (
    FILE,
    SERVER_OPTIONS,
    fault_text,
    moorage_url,
    rules_of,
    server_of,
    system_name,
    token_in,
    token_to_use,
    with_options,
)
from moorage.client.transport import shown_url, token_of

if TYPE_CHECKING:
    from moorage.integrations.ironic.nodes import NodeReader
    from moorage.integrations.ironic.rules import Rules
    from moorage.integrations.lease_api import LeaseApi

UNDECODED = "\ufffd"
"""In place of what is not UTF-8."""


@dataclass(frozen=True)
class Addresses:
    """Where Ironic and Moorage are.

    `ironic_headers` returns what is sent with own requests to Ironic. It and `token` follow the
    files that they were read from. `trusted` has the authorities that may
    vouch for it; None: those of the system.
    """

    ironic: str
    ironic_headers: Callable[[], dict[str, str]]
    trusted: ssl.SSLContext | None
    url: str
    token: str | Callable[[], str] | None


@dataclass(frozen=True)
class Target(Addresses):
    """Where Ironic and Moorage are, and what is limited.

    `ironic_name` tells this Ironic from others in the same pools; None: it was given no name.
    """

    rules: "Rules"
    ironic_name: str | None


_IRONIC = click.option("--ironic", metavar="URL", help="Ironic's own address, without /v1.")
_LIMITS = (
    click.option("--pool", metavar="NAME", help="Pool of which each busy node needs one unit."),
    click.option(
        "--rules", **FILE, help="File with rules that choose the pools, instead of --pool."
    ),
    click.option(
        "--ironic-name",
        metavar="NAME",
        help="Name of this Ironic, if several share pools; the same for all its processes.",
    ),
)
_ADDRESSES = (
    *SERVER_OPTIONS,
    click.option(
        "--ca-file", **FILE, help="Certificates (PEM) of authorities to trust for Ironic."
    ),
    click.option(
        "--ironic-token-file",
        **FILE,
        help="File with the X-Auth-Token of Moorage's own requests to Ironic.",
    ),
    click.option(
        "--ironic-headers",
        **FILE,
        help="File with headers of Moorage's own requests to Ironic, one NAME: VALUE per line.",
    ),
)


def target_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `target_of` reads."""
    return with_options((_IRONIC, *_LIMITS, *_ADDRESSES), command)


def targeting(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of which a command gets `target`."""

    @functools.wraps(command)
    def wrapped(*args: Any, **words: Any) -> None:
        target = target_of(words)
        command(*args, target=target, **words)

    return target_options(wrapped)


def addressing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of which a command gets `addresses`."""

    @functools.wraps(command)
    def wrapped(*args: Any, **words: Any) -> None:
        addresses = addresses_of(words)
        command(*args, addresses=addresses, **words)

    return with_options((_IRONIC, *_ADDRESSES), wrapped)


def target_of(words: dict[str, Any]) -> Target:
    """Take the options of `target_options` out of those of a command. Raises Failure."""
    from moorage.integrations.ironic.rules import Rules, read

    pool, rules, name = (words.pop(one) for one in ("pool", "rules", "ironic_name"))
    addresses = addresses_of(words)
    found = rules_of(pool, rules, Rules.of_pool, read)
    return Target(**vars(addresses), rules=found, ironic_name=system_name(name, "--ironic-name"))


def addresses_of(words: dict[str, Any]) -> Addresses:
    """Take the options of addresses and tokens out of those of a command. Raises Failure."""
    ironic = words.pop("ironic")
    if not ironic:
        raise Failure(USAGE, "no Ironic is set: use --ironic with its own address")
    from moorage.integrations.pem_files import trusting

    url = server_of(words)
    ca_file = words.pop("ca_file")
    try:
        return Addresses(
            ironic=ironic_url(ironic, "--ironic"),
            ironic_headers=_ironic_headers(
                words.pop("ironic_headers"), words.pop("ironic_token_file")
            ),
            trusted=None if ca_file is None else trusting(ca_file),
            url=moorage_url(url),
            token=token_to_use(words),
        )
    except (OSError, ValueError) as error:
        raise Failure(USAGE, fault_text(error)) from None


def ironic_url(url: str, option: str) -> str:
    """Return the address of an Ironic. Raises Failure: it cannot be one."""
    if url.rstrip("/").endswith("/v1"):
        named = shown_url(url.rstrip("/").removesuffix("/v1"))
        raise Failure(USAGE, f"{option} must not end with /v1: {named}")
    return moorage_url(url)


def _ironic_headers(path: str | None, token_path: str | None) -> Callable[[], dict[str, str]]:
    """Return what reads headers from a file, and a token. Raises OSError, ValueError."""
    from moorage.integrations.rereading import FileValue

    headers = FileValue(path, lambda text: _headers(text, path)) if path else dict
    token = token_in(token_path) if token_path else None

    def now() -> dict[str, str]:
        return {**headers(), **({} if token is None else {"X-Auth-Token": token()})}

    return now


def _headers(text: str, path: str) -> dict[str, str]:
    """Return the headers that a file has. Raises ValueError without the values."""
    headers = {}
    for number, line in enumerate(filter(str.strip, text.splitlines()), 1):
        name, colon, value = line.partition(":")
        if not (colon and value.strip().isprintable() and UNDECODED not in value):
            raise ValueError(f"{path}: line {number} is not NAME: VALUE")
        headers[token_of(name, f"{path}: line {number}")] = value.strip()
    return headers


@asynccontextmanager
async def opened(target: Target) -> "AsyncIterator[tuple[LeaseApi, NodeReader]]":
    """Yield Moorage's leases and Ironic's nodes. Raises Failure: what is missing is not there."""
    from moorage.integrations.ironic.nodes import NodeReader
    from moorage.integrations.lease_api import LeaseApi

    async with (
        LeaseApi(target.url, target.token) as api,
        NodeReader(target.ironic, target.ironic_headers, target.trusted) as nodes,
    ):
        yield api, nodes
