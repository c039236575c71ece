"""Code that administrative commands share: the target server or database, and the token."""

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from moorage.cli.support.output import UNREACHABLE, USAGE, Failure
from moorage.cli.support.settings import address_of, config_option, load, settings_options
from moorage.client.run.options import SERVER

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
    @with_server_options
    @functools.wraps(command)
    def wrapped(
        *args: Any, config_file: str | None, database: str | None, server: Words, **options: Any
    ) -> None:
        keep_target({"database": database}, config_file, server)
        _check_given(click.get_current_context())
        command(*args, **options)

    return wrapped


Words = dict[str, str | None]
"""Values of the options that name a server, for `target_of`."""


def with_server_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a server; their values become the argument `server`.

    A command that has one of their names already, such as the context of kubectl, keeps it.
    """
    taken = {parameter.name for parameter in getattr(command, "__click_params__", ())}
    names = [name for name in SERVER_WORDS if name not in taken]

    @functools.wraps(command)
    def wrapped(*args: Any, **options: Any) -> None:
        words = {name: options.pop(name) for name in names}
        command(*args, server=words, **options)

    for option in reversed(SERVER):
        if option.word in names:
            kind: Any = click.Path() if option.metavar == "FILE" else str
            decorate = click.option(
                option.name, type=kind, metavar=option.metavar, help=option.meaning
            )
            wrapped = decorate(wrapped)
    return wrapped


SERVER_WORDS = ("url", "token", "token_file", "context", "certificate", "ca_file")


def keep_target(options: dict[str, Any], config_file: str | None, server: Words) -> None:
    """Keep what `administration` reads: the settings with these options, and a server.

    Raises Failure: 2, an option is not valid.
    """
    if server.get("url") == "":
        raise Failure(USAGE, "--url is empty: is a variable not set?")
    from moorage.client.targets import target_of  # deferred: a command's help sends nothing

    context = click.get_current_context()
    named = context.get_parameter_source("config_file") is ParameterSource.COMMANDLINE
    local = named or any(value is not None for value in options.values())
    loaded = load(options, config_file).settings
    try:
        target = target_of(server, os.environ, local=local)
    except OSError as error:
        raise Failure(USAGE, f"cannot read {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
    context.obj = (loaded, target)


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


def is_at_server() -> bool:
    """Return whether a server answers the running command, after `administration`."""
    return click.get_current_context().meta[ADDRESSED] is not None


def server_address() -> str:
    """Return the address of the server that has answered the running command."""
    transport: Transport = click.get_current_context().meta[ADDRESSED]
    return transport.url


def server_pages() -> str | None:
    """Return the address of the dashboard of the server that has answered; None: it has none."""
    transport: Transport = click.get_current_context().meta[ADDRESSED]
    return transport.pages


def server_now() -> datetime:
    """Return the time by the clock of the server that has answered the running command.

    Without a server, the clock of this machine is the one that wrote the times in the database.
    """
    transport: Transport | None = click.get_current_context().meta.get(ADDRESSED)
    shown = None if transport is None else transport.server_time
    return datetime.now(UTC) if shown is None else shown  # noqa: TID251 - for display only


NO_SERVER = (
    "no server found: none is running on this database, and MOORAGE_URL is not set; use --url, or"
    " sign in with `moorage login URL`"
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
