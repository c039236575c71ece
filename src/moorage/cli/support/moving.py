"""What the commands share that move a ledger: the original's address, and our server's."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.command import keep_target, server
from moorage.cli.support.output import FAILED, USAGE, Failure
from moorage.cli.support.provisioning import FILE, fault_text, with_options
from moorage.cli.support.settings import config_option
from moorage.extras import needs

if TYPE_CHECKING:
    from sqlalchemy import URL

    from moorage.client.transport import Transport
    from moorage.integrations.placement.asking import PlacementApi
    from moorage.integrations.placement.reading import Source

DATABASE_OPTIONS = (
    click.option(
        "--database",
        metavar="URL",
        help="Database of OpenStack Placement: mysql+pymysql://USER:PASSWORD@HOST/NAME,"
        " postgresql://... or sqlite:///FILE.",
    ),
    click.option(
        "--database-file",
        **FILE,
        help="File with the address for --database, readable for its owner only (0600): other users"
        " see a command line.",
    ),
)
"""What `database_of` reads, for `with_options`."""

API_OPTIONS = (
    click.option(
        "--url",
        metavar="URL",
        help="Address of OpenStack Placement, if you cannot read its database.",
    ),
    click.option("--source-token", metavar="TOKEN", help="Token for --url, of an administrator."),
    click.option("--source-token-file", **FILE, help="File with the token for --url."),
)
"""What `api_of` reads, for `with_options`."""


_CLOUD = click.option(
    "--os-cloud",
    metavar="NAME",
    help="Entry of clouds.yaml: take the token from its Keystone, and by default --url.",
)


def at_our_server(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `our_server` reads. --url and --database are those of the original."""

    @config_option
    @click.option("--server", help="Address of Moorage, http://HOST:PORT; also MOORAGE_URL.")
    @click.option("--token", help="Token to send to Moorage; also MOORAGE_TOKEN.")
    @click.option("--token-file", **FILE, help="File with that token; also MOORAGE_TOKEN_FILE.")
    @functools.wraps(command)
    def wrapped(
        *args: Any,
        config_file: str | None,
        server: str | None,
        token: str | None,
        token_file: str | None,
        **options: Any,
    ) -> None:
        words = {"url": server, "token": token, "token_file": token_file}
        keep_target({}, config_file, words)
        command(*args, **options)

    return wrapped


def our_server() -> "Transport":
    """Return access to the server of Moorage. Raises Failure: 5, there is none."""
    return server(
        "no server of Moorage found: start it with `moorage serve`, or use --server or MOORAGE_URL"
    )


def from_original(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `source_of` reads."""
    return with_options((*DATABASE_OPTIONS, *API_OPTIONS, _CLOUD), command)


def source_of(words: dict[str, Any]) -> "Source":
    """Take the original out of the options of a command. Raises Failure."""
    database, file, url = (words.pop(name) for name in ("database", "database_file", "url"))
    access = [words.pop(name) for name in ("source_token", "source_token_file", "os_cloud")]
    over_api = url is not None or access[-1] is not None
    if (database is not None) + (file is not None) + over_api != 1:
        raise Failure(USAGE, "give one of --database, --database-file and --url")
    if any(access) and not over_api:
        raise Failure(USAGE, "--source-token and --source-token-file need --url")
    with placement_there():
        if over_api:
            return _api_source(url, *access)
        from moorage.integrations.placement.database import Database
        from moorage.integrations.placement.reading import DatabaseSource

        return DatabaseSource(Database(database_of(database, file)))


def database_of(database: str | None, database_file: str | None) -> "URL":
    """Return the address of a database of the original; one of both is given. Raises Failure."""
    with placement_there():
        from moorage.integrations.placement.addresses import address_in, address_of

        return address_in(database_file) if database_file else address_of(database or "")


def _api_source(
    url: str | None, token: str | None, file: str | None, cloud: str | None
) -> "Source":
    from moorage.integrations.placement.original_api import ApiSource

    return ApiSource(original_api(url, token, file, cloud))


def original_api(
    url: str | None, token: str | None, file: str | None, cloud: str | None
) -> "PlacementApi":
    """Return the API of the original, by the options of its address and token. Raises Failure."""
    from moorage.client.transport import Transport, token_in
    from moorage.integrations.placement.asking import PlacementApi

    if sum(one is not None for one in (token, file, cloud)) > 1:
        raise Failure(USAGE, "give one of --source-token, --source-token-file and --os-cloud")
    try:
        if cloud is not None:
            from moorage.integrations.openstack.cloud import Cloud

            known = Cloud(cloud)
            transport = Transport(url or known.placement_url(), None, trusted=known.trusted)
            return PlacementApi(transport, known.token)
        return PlacementApi(Transport(url or "", token_in(file) if file else token))
    except (OSError, ValueError) as error:
        raise Failure(USAGE, fault_text(error)) from None


@contextmanager
def placement_there() -> Iterator[None]:
    """Turn a missing extra, or an address that is none, into a Failure."""
    from moorage.integrations.openstack.cloud_error import CloudError
    from moorage.integrations.placement.source_error import SourceError

    try:
        yield
    except ImportError as error:
        raise Failure(USAGE, f"this command {needs('placement', error)}") from None
    except (CloudError, SourceError) as error:
        raise Failure(USAGE, str(error)) from None


@contextmanager
def moving_errors() -> Iterator[None]:
    """Turn what an original and a ledger refuse into Failures."""
    from moorage.cli.support.backend import refusals_translated
    from moorage.integrations.openstack.cloud_error import CloudError
    from moorage.integrations.placement.source_error import SourceError

    try:
        with refusals_translated():
            yield
    except (CloudError, SourceError) as error:
        raise Failure(FAILED, str(error)) from None
