"""What `moorage gate`, `ironic` and `metal3` share: addresses, tokens, rules, signals."""

import asyncio
import functools
import logging
import os
import re
import signal
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from moorage.cli.support.output import UNREACHABLE, USAGE, Failure
from moorage.client.run.parse import URL_VARIABLE, token_named
from moorage.client.run.printing import printable
from moorage.client.transport import (
    RefusedError,
    UnreachableError,
    server_url,
    shown_url,
    token_of,
)

if TYPE_CHECKING:
    from moorage.integrations.ironic.nodes import NodeReader
    from moorage.integrations.ironic.rules import Rules
    from moorage.integrations.lease_api import LeaseApi
    from moorage.integrations.rereading import FileValue

R = TypeVar("R")

NAME = re.compile(r"[A-Za-z0-9._-]{1,63}")
"""The name of an Ironic: a label of leases and of metrics."""

UNDECODED = "\ufffd"
"""In place of what is not UTF-8."""

MISSING = "this command needs aiohttp: pip install 'moorage[{}]'"


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


_FILE: dict[str, Any] = {"type": click.Path(), "metavar": "FILE"}
_IRONIC = click.option("--ironic", metavar="URL", help="Ironic's own address, without /v1.")
_LIMITS = (
    click.option("--pool", metavar="NAME", help="Each busy node has one unit of this pool."),
    click.option("--rules", **_FILE, help="Rules instead of one pool."),
    click.option(
        "--ironic-name",
        metavar="NAME",
        help="Tells this Ironic from others in the same pools; the same for all its processes.",
    ),
)
_ADDRESSES = (
    click.option("--url", metavar="URL", help="Moorage's address; by default MOORAGE_URL."),
    click.option("--token", metavar="TOKEN", help="Moorage's token; by default MOORAGE_TOKEN."),
    click.option("--token-file", **_FILE, help="File with Moorage's token."),
    click.option("--ca-file", **_FILE, help="Authorities to trust for Ironic."),
    click.option(
        "--ironic-token-file", **_FILE, help="File with the X-Auth-Token of own requests to Ironic."
    ),
    click.option(
        "--ironic-headers",
        **_FILE,
        help="Headers of own requests to Ironic, one NAME: VALUE per line.",
    ),
)


def target_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `target_of` reads."""
    return _with((_IRONIC, *_LIMITS, *_ADDRESSES), command)


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

    return _with((_IRONIC, *_ADDRESSES), wrapped)


def target_of(words: dict[str, Any]) -> Target:
    """Take the options of `target_options` out of those of a command. Raises Failure."""
    from moorage.integrations.ironic.rules import Rules, read

    pool, rules, name = (words.pop(one) for one in ("pool", "rules", "ironic_name"))
    addresses = addresses_of(words)
    found = rules_of(pool, rules, Rules.of_pool, read)
    if name is not None and not NAME.fullmatch(name):
        raise Failure(USAGE, "--ironic-name: 1 to 63 letters, digits, '.', '_' and '-'")
    return Target(**vars(addresses), rules=found, ironic_name=name)


def rules_of(
    pool: str | None, path: str | None, of_pool: Callable[[str], R], read: Callable[[Path], R]
) -> R:
    """Return the rules of --pool or of --rules, of which one must be given. Raises Failure."""
    from moorage.integrations.provisioning.rules import RulesError

    if bool(pool) == bool(path):
        raise Failure(USAGE, "give either --pool or --rules")
    try:
        return read(Path(path)) if path else of_pool(str(pool))
    except (RulesError, OSError) as error:
        raise Failure(USAGE, fault_text(error)) from None


def server_of(words: dict[str, Any]) -> str:
    """Take Moorage's address out of the options of a command. Raises Failure."""
    url = words.pop("url") or os.environ.get(URL_VARIABLE)
    if not url:
        raise Failure(USAGE, "no server is set: set MOORAGE_URL, or use --url")
    return str(url)


def addresses_of(words: dict[str, Any]) -> Addresses:
    """Take the options of addresses and tokens out of those of a command. Raises Failure."""
    ironic = words.pop("ironic")
    if not ironic:
        raise Failure(USAGE, "--ironic is missing: Ironic's own address")
    url = server_of(words)
    own = {name: words.pop(name) for name in ("token", "token_file")}
    ca_file = words.pop("ca_file")
    try:
        return Addresses(
            ironic=ironic_url(ironic, "--ironic"),
            ironic_headers=_ironic_headers(
                words.pop("ironic_headers"), words.pop("ironic_token_file")
            ),
            trusted=None if ca_file is None else _trusted(ca_file),
            url=moorage_url(url),
            token=_token_in(own["token_file"]) if own["token_file"] else token_named(own),
        )
    except (OSError, ValueError) as error:
        raise Failure(USAGE, fault_text(error)) from None


def _with(
    options: Sequence[Callable[[Callable[..., None]], Callable[..., None]]],
    command: Callable[..., None],
) -> Callable[..., None]:
    for option in reversed(options):
        command = option(command)
    return command


def ironic_url(url: str, option: str) -> str:
    """Return the address of an Ironic. Raises Failure: it cannot be one."""
    if url.rstrip("/").endswith("/v1"):
        named = shown_url(url.rstrip("/").removesuffix("/v1"))
        raise Failure(USAGE, f"{option} must be without /v1: {named}")
    return moorage_url(url)


def moorage_url(url: str) -> str:
    """Return the address of a server. Raises Failure: it cannot be one."""
    try:
        return server_url(url)
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None


def fault_text(error: Exception) -> str:
    """Return what is wrong with a file that the command line names."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot read {error.filename}: {error.strerror}"
    return str(error)


def _trusted(path: str) -> ssl.SSLContext:
    """Read the authorities to trust. Raises OSError with the name of the file."""
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        raise OSError(f"{path}: {error.strerror or error}") from error


def _token_in(path: str) -> "FileValue[str]":
    """Return the token in a file. Raises OSError, ValueError."""
    from moorage.integrations.rereading import FileValue

    return FileValue(path, lambda text: token_of(text, path))


def _ironic_headers(path: str | None, token_path: str | None) -> Callable[[], dict[str, str]]:
    """Return what reads headers from a file, and a token. Raises OSError, ValueError."""
    from moorage.integrations.rereading import FileValue

    headers = FileValue(path, lambda text: _headers(text, path)) if path else dict
    token = _token_in(token_path) if token_path else None

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


async def pools_checked(api: "LeaseApi", pools: Sequence[str], url: str) -> None:
    """Check the pools of rules at the server with this address. Raises Failure."""
    from moorage.integrations.provisioning.pools import PoolError, check

    try:
        await check(api, pools)
    except PoolError as error:
        raise Failure(USAGE, str(error)) from None
    except UnreachableError as error:
        raise Failure(UNREACHABLE, str(error)) from None
    except RefusedError as error:
        raise Failure(USAGE, f"{shown_url(url)}: {error}", error.code) from None


class _OneLine(logging.Formatter):
    """Log lines: errors of Ironic, and names of nodes, have text of others."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return exactly one line, whatever the message contains."""
        return printable(super().formatMessage(record))


def carried_out(work: Callable[[], Any], extra: str = "ironic") -> Any:
    """Run asynchronous work of a command that needs aiohttp, which an extra installs."""
    try:
        import aiohttp  # noqa: F401 # to say which extra is missing
    except ImportError:
        raise Failure(USAGE, MISSING.format(extra)) from None
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("moorage: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    return asyncio.run(work())


def on_signals(numbers: tuple[signal.Signals, ...], react: Callable[[], None]) -> None:
    """Call a function at each of these signals, in place of what they do."""
    loop = asyncio.get_running_loop()
    for number in numbers:
        loop.add_signal_handler(number, react)


async def either(stop: asyncio.Event, seconds: float) -> None:
    """Return at `stop`, or after a time."""
    await first_of(stop, seconds=seconds)


async def first_of(*events: asyncio.Event, seconds: float | None = None) -> None:
    """Return at one of these events, or after a time; None: there is no such time."""
    tasks = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
