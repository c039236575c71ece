"""What commands for administrators share: which server or database they mean, and as whom."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click

from moorage.cli.support.credentials import token_told
from moorage.cli.support.options import address_of, config_option, load, settings_options
from moorage.cli.support.output import UNREACHABLE, Failure

if TYPE_CHECKING:
    from moorage.client.admission import Admission
    from moorage.client.transport import Transport
    from moorage.wire.admin import RotationWanted, TokenWanted


class Administration(Protocol):
    """What an administrator may ask."""

    def token_create(self, wanted: "TokenWanted") -> dict[str, Any]:
        """Make a token; its secret is under `token`."""
        ...

    def token_list(self) -> list[dict[str, Any]]:
        """Return all tokens."""
        ...

    def token_revoke(self, token_id: str) -> None:
        """Make a token worthless."""
        ...

    def token_rotate(self, token_id: str, wanted: "RotationWanted") -> dict[str, Any]:
        """Make a token in the place of another one; its secret is under `token`."""
        ...

    def audit(self, limit: int) -> list[dict[str, Any]]:
        """Return the newest audit entries, newest first."""
        ...

    def backup(self, target: str) -> str:
        """Write a complete copy of the database to a new file; return its path."""
        ...

    def check(self) -> list[str]:
        """Return every difference between what is stored and what it should be."""
        ...

    def epoch_raise(self) -> dict[str, int]:
        """Begin a new epoch; return it, and the revision after which it begins."""
        ...


def administering(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that `administration` and `database_url` look at."""

    @config_option
    @settings_options("database")
    @click.option("--url", envvar="MOORAGE_URL", help="The server to ask, http://HOST:PORT.")
    @click.option("--token", envvar="MOORAGE_TOKEN", help="The token to ask it with.")
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
        token = token_told(token, click.get_current_context().get_parameter_source("token"))
        click.get_current_context().obj = (settings, url, token)
        command(*args, **options)

    return wrapped


def administration() -> Administration:
    """Return the way to carry out the running command; see `administration.find`."""
    from moorage.cli.support.backend import find  # only now: it loads the whole service

    return find(*click.get_current_context().obj)


def server() -> "Transport":
    """Return the way to the server that the running command means. Raises Failure: 5."""
    from moorage.cli.support.backend import AtServer

    found = administration()
    if not isinstance(found, AtServer):
        raise Failure(UNREACHABLE, "no server is running on this database; name one with --url")
    return found.transport


@contextmanager
def at_server() -> "Iterator[Admission]":
    """Hand out the pools and leases of the server that the running command means.

    Raises Failure: 5 without a server, and what it refuses.
    """
    from moorage.cli.support.backend import refusals_told
    from moorage.client.admission import Admission

    with refusals_told():
        yield Admission(server())


def database_url() -> str:
    """Return the address of the database that the running command means. Raises Failure: 2."""
    return address_of(click.get_current_context().obj[0])
