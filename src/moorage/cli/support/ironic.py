"""What the commands of `moorage ironic` share: addresses, tokens, rules, signals."""

import asyncio
import functools
import logging
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.output import UNREACHABLE, USAGE, Failure
from moorage.client.run.printing import printable
from moorage.client.transport import RefusedError, UnreachableError, server_url, token_of

if TYPE_CHECKING:
    from moorage.integrations.ironic.nodes import NodeReader
    from moorage.integrations.ironic.rules import Rules
    from moorage.integrations.lease_api import LeaseApi

EXTRA = "install moorage[ironic] to use this command"


@dataclass(frozen=True)
class Addresses:
    """Where Ironic and Moorage are."""

    ironic: str
    ironic_headers: dict[str, str]
    url: str
    token: str | None


@dataclass(frozen=True)
class Target(Addresses):
    """Where Ironic and Moorage are, and what is limited."""

    rules: "Rules"


def targeting(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of which a command gets `target`."""

    @addressing
    @click.option("--pool", metavar="NAME", help="Each busy node has one unit of this pool.")
    @click.option(
        "--rules",
        "rules_file",
        type=click.Path(),
        metavar="FILE",
        help="Rules instead of one pool.",
    )
    @functools.wraps(command)
    def wrapped(
        *args: Any,
        addresses: Addresses,
        pool: str | None,
        rules_file: str | None,
        **options: Any,
    ) -> None:
        target = Target(**vars(addresses), rules=_rules(pool, rules_file))
        command(*args, target=target, **options)

    return wrapped


def addressing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of which a command gets `addresses`."""

    @click.option(
        "--ironic", required=True, metavar="URL", help="Address of Ironic's API, without /v1."
    )
    @click.option(
        "--ironic-token-file",
        type=click.Path(),
        metavar="FILE",
        help="File with the X-Auth-Token for Ironic; by default none is sent.",
    )
    @click.option(
        "--url",
        envvar="MOORAGE_URL",
        metavar="URL",
        help="Moorage's address; by default MOORAGE_URL.",
    )
    @click.option(
        "--token",
        envvar="MOORAGE_TOKEN",
        metavar="TOKEN",
        help="Moorage's token; by default MOORAGE_TOKEN.",
    )
    @click.option("--token-file", type=click.Path(), metavar="FILE", help="File with the token.")
    @functools.wraps(command)
    def wrapped(
        *args: Any,
        ironic: str,
        ironic_token_file: str | None,
        url: str | None,
        token: str | None,
        token_file: str | None,
        **options: Any,
    ) -> None:
        if not url:
            raise Failure(USAGE, "no server is set: set MOORAGE_URL, or use --url")
        ironic, url = ironic_url(ironic, "--ironic"), moorage_url(url)
        headers = {} if not ironic_token_file else {"X-Auth-Token": _secret(ironic_token_file)}
        addresses = Addresses(
            ironic=ironic,
            ironic_headers=headers,
            url=url,
            token=_secret(token_file) if token_file else _checked(token),
        )
        command(*args, addresses=addresses, **options)

    return wrapped


def _rules(pool: str | None, file: str | None) -> "Rules":
    from moorage.integrations.ironic import rules

    if (pool is None) == (file is None):
        raise Failure(USAGE, "give either --pool or --rules")
    if pool is not None:
        return rules.Rules.of_pool(pool)
    try:
        return rules.read(Path(str(file)))
    except (rules.RulesError, OSError) as error:
        raise Failure(USAGE, fault_text(error)) from None


def _secret(file: str) -> str:
    try:
        return token_of(Path(file).read_text(), file)
    except (OSError, ValueError) as error:
        raise Failure(USAGE, fault_text(error)) from None


def ironic_url(url: str, option: str) -> str:
    """Return the address of an Ironic. Raises Failure: it cannot be one."""
    if url.rstrip("/").endswith("/v1"):
        raise Failure(USAGE, f"{option} must be without /v1: {url.rstrip('/').removesuffix('/v1')}")
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


def _checked(token: str | None) -> str | None:
    try:
        return None if token is None else token_of(token, "the token")
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None


@asynccontextmanager
async def opened(target: Target) -> "AsyncIterator[tuple[LeaseApi, NodeReader]]":
    """Yield Moorage's leases and Ironic's nodes. Raises Failure: what is missing is not there."""
    from moorage.integrations.ironic.nodes import NodeReader
    from moorage.integrations.lease_api import LeaseApi

    async with (
        LeaseApi(target.url, target.token) as api,
        NodeReader(target.ironic, target.ironic_headers) as nodes,
    ):
        yield api, nodes


async def pools_checked(api: "LeaseApi", target: Target) -> None:
    """Check the pools of the rules. Raises Failure."""
    from moorage.integrations.provisioning.pools import PoolError, check

    try:
        await check(api, target.rules.pools)
    except PoolError as error:
        raise Failure(USAGE, str(error)) from None
    except UnreachableError as error:
        raise Failure(UNREACHABLE, str(error)) from None
    except RefusedError as error:
        raise Failure(USAGE, f"{target.url}: {error}", error.code) from None


class _OneLine(logging.Formatter):
    """Log lines: errors of Ironic, and names of nodes, have text of others."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return exactly one line, whatever the message contains."""
        return printable(super().formatMessage(record))


def carried_out(work: Callable[[], Any]) -> Any:
    """Run asynchronous work of a command that needs aiohttp."""
    try:
        import aiohttp  # noqa: F401 # to say which extra is missing
    except ImportError:
        raise Failure(USAGE, EXTRA) from None
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
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
