"""What signals do to the process: TERM and INT stop it cleanly, HUP reads secrets' files again.

HUP comes for two reasons. `systemctl reload` or `kill` sends it to have the certificate, its key
and the password file read again; nothing else happens then. Or the terminal from which the process
was started has been closed; then the process stops cleanly, because nobody could see or stop it any
more. Under `nohup` HUP is ignored, and stays so.
"""

import asyncio
import logging
import os
import signal
import ssl
from collections.abc import Callable, Sequence
from typing import Protocol

from moorage.config import Settings
from moorage.config.errors import ConfigError

TERMINAL = "/dev/tty"

log = logging.getLogger("moorage.serve")


class Stoppable(Protocol):
    """A server, as far as signals reach it."""

    should_exit: bool
    tls: ssl.SSLContext | None


class Signals:
    """Remembers that a signal asked to stop, and passes it on to the servers once there are any.

    It also calls `tell`, which ends waits that a stop makes pointless.
    """

    def __init__(self, settings: Settings) -> None:
        self.asked = False
        self.servers: Sequence[Stoppable] = ()
        self.tell: Callable[[], None] = lambda: None
        self.passwords: Callable[[], None] | None = None
        """Reads the password file again; raises ConfigError if it cannot be used."""
        self._settings = settings
        self._had_terminal = _has_terminal()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.ask)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, self._hung_up)

    def ask(self) -> None:
        """Let everything stop."""
        self.asked = True
        self.tell()
        for server in self.servers:
            server.should_exit = True

    def _hung_up(self) -> None:
        if self._had_terminal and not _has_terminal():
            log.info("the terminal was closed: stopping")
            self.ask()
            return
        if self._settings.tls_cert is None:
            log.info("HUP: there is no certificate to read again")
        else:
            self._reload()
        if self._settings.boskos_password_file is not None and self.passwords is not None:
            self._reload_passwords(self.passwords)

    def _reload(self) -> None:
        """Show new connections what is in the certificate's files now, if it can be used."""
        try:
            fresh = certificate_of(self._settings)
        except ConfigError as error:
            log.error("HUP: the certificate is still the old one: %s", error)
            return
        for server in self.servers:
            server.tls = fresh
        log.info("HUP: the certificate was read again")

    def _reload_passwords(self, read: Callable[[], None]) -> None:
        try:
            read()
        except ConfigError as error:
            log.error("HUP: the passwords are still the old ones: %s", error)
        else:
            log.info("HUP: the password file was read again")


def certificate_of(settings: Settings) -> ssl.SSLContext:
    """Return what HTTPS is served with. Raises ConfigError: it cannot be."""
    assert settings.tls_cert is not None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Without a password, OpenSSL would ask for an encrypted key's on the terminal, and wait.
        context.load_cert_chain(settings.tls_cert, settings.tls_key, password="")
    except OSError as error:  # ssl's own errors are OSErrors
        raise ConfigError(f"tls_cert, tls_key: cannot be used: {error}") from None
    return context


def _has_terminal() -> bool:
    """Is there a terminal that this process belongs to?"""
    try:
        os.close(os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
