"""Code that administrative commands share: the target server or database, and the token."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import click

from moorage.cli.support.credentials import token_given
from moorage.cli.support.options import address_of, config_option, load, settings_options
from moorage.cli.support.output import UNREACHABLE, USAGE, Failure

if TYPE_CHECKING:
    from moorage.client.admission import Admission
    from moorage.client.fleet import Fleet
    from moorage.client.ledger import Ledger
    from moorage.client.reporting import Reporting
    from moorage.client.transport import Transport
    from moorage.wire.admin import RotationWanted, TokenWanted


ADDRESSED = "moorage.addressed"
"""In a context's `meta`: the transport to the server that the running command addresses."""


class Administration(Protocol):
    """The operations of administrative commands."""

    def token_create(self, wanted: "TokenWanted") -> dict[str, Any]:
        """Create a token; its secret is under `token`."""
        ...

    def token_list(self) -> list[dict[str, Any]]:
        """Return all tokens."""
        ...

    def token_revoke(self, token_id: str, *, leases: bool = False) -> None:
        """Revoke a token and end its tickets, with `leases` its leases, too."""
        ...

    def token_rotate(self, token_id: str, wanted: "RotationWanted") -> dict[str, Any]:
        """Replace a token by a new one, whose secret is under `token`."""
        ...

    def audit(self, limit: int, target: str | None = None) -> list[dict[str, Any]]:
        """Return the newest audit entries, newest first; those of a target, if there is one."""
        ...

    def backup(self, target: str) -> str:
        """Write a complete copy of the database to a new file; return its path."""
        ...

    def check(self) -> list[str]:
        """Return every difference between stored derived data and its recomputed value."""
        ...

    def epoch_raise(self) -> dict[str, int]:
        """Start a new epoch; return it and the revision after which it begins."""
        ...


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
        settings = load({"database": database}, config_file).settings
        context = click.get_current_context()
        given = token_given(token, context.get_parameter_source("token"))
        context.obj = (settings, url, given)
        _check_given(context)
        command(*args, **options)

    return wrapped


def _check_given(context: click.Context) -> None:
    """Raise Failure, 2, if an argument is empty, as that of a variable without a value is."""
    for parameter in context.command.params:
        if isinstance(parameter, click.Argument):
            given = context.params.get(parameter.name or "")
            if "" in (given if isinstance(given, tuple) else (given,)):
                message = f"{parameter.make_metavar(context)} is empty: is a variable not set?"
                raise Failure(USAGE, message)


def administration() -> Administration:
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


def server() -> "Transport":
    """Return access to the running command's server. Raises Failure: 5, there is none."""
    from moorage.cli.support.backend import ServerBackend

    found = administration()
    if not isinstance(found, ServerBackend):
        raise Failure(
            UNREACHABLE,
            "no server found: none is running on this database, and MOORAGE_URL is not set;"
            " use --url",
        )
    return found.transport


@contextmanager
def at_server() -> "Iterator[Admission]":
    """Yield access to the pools and leases of the running command's server.

    Raises Failure: 5 without a server; the server's refusals become Failures, too.
    """
    from moorage.cli.support.backend import refusals_translated
    from moorage.client.admission import Admission

    with refusals_translated():
        yield Admission(server())


@contextmanager
def fleet_at_server() -> "Iterator[Fleet]":
    """Yield access to the agents of the running command's server; as `at_server`."""
    from moorage.cli.support.backend import refusals_translated
    from moorage.client.fleet import Fleet

    with refusals_translated():
        yield Fleet(server())


@contextmanager
def ledger_at_server() -> "Iterator[Ledger]":
    """Yield access to the providers and consumers of the running command's server."""
    from moorage.cli.support.backend import refusals_translated
    from moorage.client.ledger import Ledger

    with refusals_translated():
        yield Ledger(server())


@contextmanager
def reporting_at_server() -> "Iterator[Reporting]":
    """Yield access to the groups of reporters of the running command's server; as `at_server`."""
    from moorage.cli.support.backend import refusals_translated
    from moorage.client.reporting import Reporting

    with refusals_translated():
        yield Reporting(server())


def database_url() -> str:
    """Return the address of the running command's database. Raises Failure: 2."""
    return address_of(click.get_current_context().obj[0])
