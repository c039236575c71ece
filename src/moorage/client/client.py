"""The client of one server: the whole native API, and leases as blocks of code."""

from __future__ import annotations

import os
from typing import cast

from moorage.client.admission import Admission
from moorage.client.fleet import Fleet
from moorage.client.imports import Imports
from moorage.client.leasing.asynchronous import LEASES_MAX, AsyncHolding, Places
from moorage.client.leasing.dry_run import NoServer, holding
from moorage.client.leasing.errors import ConfigurationError
from moorage.client.leasing.holding import Holding
from moorage.client.leasing.options import HoldingOptions, options_of
from moorage.client.leasing.signature import taking
from moorage.client.ledger import Ledger
from moorage.client.reporting import Reporting
from moorage.client.reshapes import Reshapes
from moorage.client.run.labels import is_on
from moorage.client.run.lease.api import Leases
from moorage.client.run.parse import UNLIMITED_HINT
from moorage.client.run.variables import UNLIMITED, nearly
from moorage.client.targets import URL, token_of_environment
from moorage.client.transport import SECONDS_MAX, Token, Transport, token_in, token_of


class Client:
    """A client of one server; usable from all threads, and after a fork.

    `admission` has pools and leases, `ledger` claims, providers, changes, the audit log and tokens,
    `fleet` agents and their groups, `reporting` groups of reporters and their reports, `reshapes`
    plans that change trees, `imports` moves a ledger.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        token_file: str | None = None,
        certificate: str | None = None,
        seconds_max: float = SECONDS_MAX,
    ) -> None:
        """Prepare requests to a server; does not connect.

        If no server is set, it raises ConfigurationError. With MOORAGE_UNLIMITED_WITHOUT_SERVER=1
        leases are then a dry run, as with `moorage run`: their blocks run without a limit, and a
        warning in the log says so; everything else raises ConfigurationError.

        Args:
            url: the server's, `http://HOST:PORT`; by default that in `MOORAGE_URL`.
            token: sent with each request; by default that in `MOORAGE_TOKEN`, or else in the file
                that `MOORAGE_TOKEN_FILE` names, if any.
            token_file: a file with the token, which is read again whenever it has changed.
            certificate: a PEM file; trust only this certificate of the server.
            seconds_max: the longest wait for an answer.

        Raises:
            ConfigurationError: the URL, the token or the certificate is not valid, or no server is
                set.
        """
        url = url or os.environ.get(URL)
        try:
            transport = (
                Transport(
                    url,
                    _token(token, token_file),
                    certificate=certificate,
                    seconds_max=seconds_max,
                )
                if url
                else cast(Transport, NoServer(_unset()))
            )
        except (OSError, ValueError) as error:
            raise ConfigurationError(str(error)) from None
        self.admission = Admission(transport)
        self.ledger = Ledger(transport)
        self.fleet = Fleet(transport)
        self.reporting = Reporting(transport)
        self.reshapes = Reshapes(transport)
        self.imports = Imports(transport)
        self._leases = transport if isinstance(transport, NoServer) else Leases(transport)

    @taking(options_of)
    def lease(self, options: HoldingOptions) -> Holding:  # noqa: D417 # the arguments are those of options_of
        """Return a lease for a `with` block, or for `acquire` and `release`.

        Durations are seconds, or text such as `90s`, `20m`, `1h30m`.

        Args:
            pool: its name, or several pools with their units: all are granted at once, or none.
            units: of the pool.
            any_of: alternatives, each a pool or several pools with their units: the first that is
                free is granted, together with `pool`. `pools` of the lease has the granted ones.
            choose: if several alternatives are free: `least_loaded`, by the share of the limit, or
                `order`, the first.
            slot: labels that the slots must have, of a pool with named slots; for several pools by
                pool. `slots` of the lease has their names.
            hold: the server ends the lease this long after granting it; by default that of the
                pool.
            wait: how long to wait in line; 0: one try.
            ttl: how long the lease outlives a holder that died; by default that of the pool. Code
                that keeps Python's other threads from running must let go within half of it.
            priority: higher goes first.
            labels: shown with the lease.
            supersede: a group of requests of which only the newest waits: the ticket of the group
                that waits ends, as SupersededError of its program.
            cancel_running: also ask the programs that hold leases of the group to stop, see
                `Holding.asked_to_stop`.
            preemptible: the program may be asked to stop for requests that go before it, see
                `Holding.asked_to_stop`, and has this time for that; then the lease ends.
            about: add labels that describe the program: host, user, pid, command and CI job, as
                `moorage run` does; those in `labels` win. `MOORAGE_LABELS=0` adds none.
            key: names what the lease is for. A program that asks again with the same key and
                arguments, after a crash or a restart, gets its lease or its place in line again.
                The place is kept for 5 minutes while no program waits. Two programs must not use
                one key at the same time: they would share the lease.
            unreachable_after: how long to try while no server answers.
            patient: the lease is lost only if the server says so, never because the server does not
                answer.
            outcome: report how the block ended: ok, or failed if it raised an error.
            on_lost: called once with the reason, in a thread, as soon as the lease is lost.

        Raises:
            ValueError: an argument is not valid.
        """
        return holding(self._leases, options)


class AsyncClient:
    """The leases of one server for asyncio. `client` is the client for everything else.

    The methods of `client` wait for the server: call them with `asyncio.to_thread`.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        token_file: str | None = None,
        certificate: str | None = None,
        leases_max: int = LEASES_MAX,
    ) -> None:
        """See `Client`. `leases_max` limits the leases that wait or are held at once.

        A lease that waits needs one thread, one that is held needs two.
        """
        self.client = Client(url, token, token_file=token_file, certificate=certificate)
        self._places = Places(leases_max)

    @taking(options_of)
    def lease(self, options: HoldingOptions) -> AsyncHolding:
        """Return a lease for an `async with` block; the arguments are those of `Client.lease`.

        The block raises TooManyLeasesError if `leases_max` are in use. If the lease is lost, the
        task is cancelled and the block ends with LeaseLostError.
        """
        return AsyncHolding(self.client._leases, options, self._places)


def _unset() -> str:
    """Return that no server is set. Raises ValueError: so nothing may run."""
    hints = "".join(f"; {line}" for line in nearly(os.environ))
    text = f"no server is set: pass url, or set {URL}{hints}"
    if not is_on(UNLIMITED, os.environ, False):
        raise ValueError(f"{text}, {UNLIMITED_HINT}")
    return text


def _token(given: str | None, file: str | None) -> Token:
    """Return the token. Raises OSError, ValueError."""
    if given is not None and file is not None:
        raise ValueError("token and token_file exclude each other: pass one of them")
    if given is not None:
        return token_of(given, "token")
    return token_in(file) if file is not None else token_of_environment(os.environ)
