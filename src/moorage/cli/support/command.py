"""Code that administrative commands share: the target server or database, and the token."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from moorage.cli.support.credentials import token_given
from moorage.cli.support.output import UNREACHABLE, USAGE, Failure
from moorage.cli.support.settings import address_of, config_option, load, settings_options

if TYPE_CHECKING:
    from moorage.cli.support.backend import ServerBackend
    from moorage.cli.support.database import DatabaseBackend
    from moorage.client.transport import Transport

R = TypeVar("R")

ADDRESSED = "moorage.addressed"
"""In a context's `meta`: the transport to the server that the running command addresses."""


def administering(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `administration` and `database_url` use to a command."""

    @config_option
    @settings_options("database")
    @click.option("--url", envvar="MOORAGE_URL", help="Address of the server, http://HOST:PORT.")
    @click.option("--token", envvar="MOORAGE_TOKEN", help="Token to send to the server.")
    @functools.wraps(command)
    def wrapped(
        *args: Any,
        config_file: str | None,
        database: str | None,
        url: str | None,
        token: str | None,
        **options: Any,
    ) -> None:
        keep_target({"database": database}, config_file, url, token)
        _check_given(click.get_current_context())
        command(*args, **options)

    return wrapped


def keep_target(
    options: dict[str, Any], config_file: str | None, url: str | None, token: str | None
) -> None:
    """Keep what `administration` reads: the settings with these options, and a server's address."""
    context = click.get_current_context()
    given = token_given(token, context.get_parameter_source("token"))
    context.obj = (load(options, config_file).settings, url, given)


def _check_given(context: click.Context) -> None:
    """Raise Failure, 2, if an argument is empty, as that of a variable without a value is."""
    for parameter in context.command.params:
        if isinstance(parameter, click.Argument):
            given = context.params.get(parameter.name or "")
            if "" in (given if isinstance(given, tuple) else (given,)):
                name = parameter.make_metavar(context).strip("[]")
                message = f"{name} is empty: is a variable not set?"
                raise Failure(USAGE, message)


def administration() -> "ServerBackend | DatabaseBackend":
    """Return access to the running command's target; see `backend.find`."""
    # deferred: it loads the whole service
    from moorage.cli.support.backend import ServerBackend, find

    context = click.get_current_context()
    found = find(*context.obj)
    context.meta[ADDRESSED] = found.transport if isinstance(found, ServerBackend) else None
    return found


def server_address() -> str:
    """Return the address of the server that has answered the running command."""
    transport: Transport = click.get_current_context().meta[ADDRESSED]
    return transport.url


def server_now() -> datetime:
    """Return the time by the clock of the server that has answered the running command.

    Without a server, the clock of this machine is the one that wrote the times in the database.
    """
    transport: Transport | None = click.get_current_context().meta.get(ADDRESSED)
    shown = None if transport is None else transport.server_time
    return datetime.now(UTC) if shown is None else shown  # noqa: TID251 - for display only


NO_SERVER = (
    "no server found: none is running on this database, and MOORAGE_URL is not set; use --url"
)


def server(missing: str = NO_SERVER) -> "Transport":
    """Return access to the running command's server. Raises Failure: 5, there is none.

    `missing` says so, and what to do.
    """
    from moorage.cli.support.backend import ServerBackend

    found = administration()
    if not isinstance(found, ServerBackend):
        raise Failure(UNREACHABLE, missing)
    return found.transport


@contextmanager
def at_server(room: "Callable[[Transport], R]") -> Iterator[R]:
    """Yield access to a part of the running command's server, such as `Admission`.

    Raises Failure: 5 without a server; the server's refusals become Failures, too.
    """
    from moorage.cli.support.backend import refusals_translated

    with refusals_translated():
        yield room(server())


def database_url() -> str:
    """Return the address of the running command's database. Raises Failure: 2."""
    return address_of(click.get_current_context().obj[0])
