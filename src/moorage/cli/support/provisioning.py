"""What commands share that limit hosts: addresses, tokens, rules, pools, signals."""

import asyncio
import logging
import os
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from moorage.cli.support.options import SecondsRange
from moorage.cli.support.output import UNREACHABLE, USAGE, Failure
from moorage.client.run.printing import printable
from moorage.client.targets import URL, token_named
from moorage.client.transport import (
    RefusedError,
    UnreachableError,
    server_url,
    shown_url,
    token_of,
)
from moorage.extras import needs
from moorage.integrations.clock import first_of

if TYPE_CHECKING:
    from moorage.integrations.lease_api import LeaseApi
    from moorage.integrations.provisioning.passes import Governs
    from moorage.integrations.rereading import FileValue

R = TypeVar("R")

NAME = re.compile(r"[A-Za-z0-9._-]{1,63}")
"""The name of an Ironic or a cluster: a label of leases and of metrics."""

FILE: dict[str, Any] = {"type": click.Path(), "metavar": "FILE"}
SERVER_OPTIONS = (
    click.option("--url", metavar="URL", help="Moorage's address; by default MOORAGE_URL."),
    click.option("--token", metavar="TOKEN", help="Moorage's token; by default MOORAGE_TOKEN."),
    click.option("--token-file", **FILE, help="File with Moorage's token."),
)
"""What `server_of` and `token_to_use` read, for `with_options`."""

log = logging.getLogger("moorage.provisioning")


def with_options(
    options: Sequence[Callable[[Callable[..., None]], Callable[..., None]]],
    command: Callable[..., None],
) -> Callable[..., None]:
    """Add options to a command, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def interval_option(meaning: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option for the seconds between two passes."""
    return click.option(
        "--interval",
        type=SecondsRange(0.1, 60),
        default=2.0,
        metavar="SECONDS",
        help=f"Seconds between two passes{meaning}; 2 by default.",
    )


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
    url = words.pop("url") or os.environ.get(URL)
    if not url:
        raise Failure(USAGE, "no server is set: set MOORAGE_URL, or use --url")
    return str(url)


def moorage_url(url: str) -> str:
    """Return the address of a server. Raises Failure: it cannot be one."""
    try:
        return server_url(url)
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None


def system_name(name: str | None, option: str) -> str | None:
    """Return the name that tells a system from others in the same pools. Raises Failure."""
    if name is not None and not NAME.fullmatch(name):
        raise Failure(USAGE, f"{option} must have 1 to 63 letters, digits, '.', '_' and '-'")
    return name


def fault_text(error: Exception) -> str:
    """Return what is wrong with a file that the command line names."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot read {error.filename}: {error.strerror}"
    return str(error)


def token_to_use(words: dict[str, Any]) -> "str | FileValue[str] | None":
    """Take Moorage's token out of the options of a command: that of a file follows the file.

    Raises Failure.
    """
    own = {name: words.pop(name) for name in ("token", "token_file")}
    try:
        named = token_named(own, os.environ)
        return named if named is None or isinstance(named, str) else token_in(named.path)
    except (OSError, ValueError) as error:
        raise Failure(USAGE, fault_text(error)) from None


def token_in(path: str) -> "FileValue[str]":
    """Return the token in a file. Raises OSError, ValueError."""
    from moorage.integrations.rereading import FileValue

    return FileValue(path, lambda text: token_of(text, path))


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
    except ImportError as error:
        raise Failure(USAGE, f"this command {needs(extra, error)}") from None
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("moorage: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    return asyncio.run(work())


def on_signals(numbers: tuple[signal.Signals, ...], react: Callable[[], None]) -> None:
    """Call a function at each of these signals, in place of what they do."""
    loop = asyncio.get_running_loop()
    for number in numbers:
        loop.add_signal_handler(number, react)


@asynccontextmanager
async def supervised(
    stop: asyncio.Event, trouble: Callable[[], str | None], doing: Callable[[], str]
) -> AsyncIterator[None]:
    """Notify systemd as long as this is entered; alive as long as the event loop turns.

    It is ready at once: machines must boot while Ironic or Moorage is away.

    Args:
        stop: is set when it is time to stop.
        trouble: returns why there is no picture of all hosts; None: there is one.
        doing: returns what is done.
    """
    from moorage.systemd.heartbeat import heartbeat
    from moorage.systemd.notifier import Notifier

    notifier = Notifier(os.environ, lambda text: log.warning("%s", text))

    async def ending() -> None:
        await stop.wait()
        notifier.stopping()

    def status() -> str:
        return "stopping" if notifier.stops else trouble() or doing()

    waiting = asyncio.create_task(ending())
    try:
        async with heartbeat(notifier, status, is_ready=lambda: True):
            yield
    finally:
        waiting.cancel()


def stop_event() -> asyncio.Event:
    """Return what is set by Ctrl-C and by SIGTERM."""
    stop = asyncio.Event()
    on_signals((signal.SIGTERM, signal.SIGINT), stop.set)
    return stop


async def one_pass(governor: "Governs") -> None:
    """Make one pass. Raises Failure."""
    succeeded = await governor.tick()
    await governor.close()
    if not succeeded:
        raise Failure(UNREACHABLE, "the pass failed")


async def until_reached(
    prepare: Callable[[], Awaitable[R]],
    failed: Callable[[str], None],
    stop: asyncio.Event,
    interval: float,
) -> R | None:
    """Try again and again until what a governor needs answers, or `stop` (None).

    A governor that ended because one is away would be started again and again. Raises Failure.
    """
    warned = False
    while not stop.is_set():
        try:
            return await prepare()
        except Failure as failure:
            if failure.exit_code != UNREACHABLE:
                raise
            failed(failure.message)
            if not warned:
                log.warning("nothing is started yet: %s", failure.message)
            warned = True
        await first_of(stop, seconds=interval)
    return None
