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
from moorage.client.transport import RefusedError, UnreachableError, token_of

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
    @click.option("--pool", help="Each node on which Ironic works has a unit of this pool.")
    @click.option(
        "--rules", "rules_file", type=click.Path(), metavar="FILE", help="Rules in place of --pool."
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

    @click.option("--ironic", required=True, help="Address of Ironic's API, without /v1.")
    @click.option(
        "--ironic-token-file",
        type=click.Path(),
        metavar="FILE",
        help="Has the token that is sent to Ironic as X-Auth-Token; by default none is.",
    )
    @click.option("--url", envvar="MOORAGE_URL", help="Address of Moorage, http://HOST:PORT.")
    @click.option("--token", envvar="MOORAGE_TOKEN", help="Token to send to Moorage.")
    @click.option(
        "--token-file", type=click.Path(), metavar="FILE", help="Has the token in place of --token."
    )
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
            raise Failure(USAGE, "name the address of Moorage with --url or MOORAGE_URL")
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
        raise Failure(USAGE, "name either --pool or --rules")
    if pool is not None:
        return rules.Rules.of_pool(pool)
    try:
        return rules.read(Path(str(file)))
    except (rules.RulesError, OSError) as error:
        raise Failure(USAGE, str(error)) from None


def _secret(file: str) -> str:
    try:
        return token_of(Path(file).read_text(), file)
    except (OSError, ValueError) as error:
        raise Failure(USAGE, str(error)) from None


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
        raise Failure(USAGE, f"Moorage refuses: {error}", error.code) from None


def carried_out(work: Callable[[], Any]) -> Any:
    """Run asynchronous work of a command that needs aiohttp."""
    try:
        import aiohttp  # noqa: F401 # to say which extra is missing
    except ImportError:
        raise Failure(USAGE, EXTRA) from None
    logging.basicConfig(level=logging.INFO, format="moorage: %(message)s")
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
