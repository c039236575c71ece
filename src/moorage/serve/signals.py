"""Handles signals: TERM and INT stop the process cleanly, HUP reloads the files with secrets.

During the start, when the event loop may be busy or wait for long, TERM and INT end it at once.

HUP has two causes. `systemctl reload` or `kill` sends it to reload the certificate, its key and the
password file. Or the terminal from which the process was started was closed; then the process stops
cleanly, because the user could no longer see or stop it. Under `nohup` HUP stays ignored.
"""

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from moorage.config import ConfigError
from moorage.config.settings import Settings
from moorage.serve.certificate import Certificate
from moorage.systemd.notifier import Notifier

TERMINAL = "/dev/tty"

log = logging.getLogger("moorage.serve")


class Stoppable(Protocol):
    """The part of a server that signals use."""

    def drain(self) -> None:
        """Begin to stop."""
        ...


class Signals:
    """Stops the servers after a signal; a signal may come before they exist.

    Also calls `tell`, which ends the waits of clients, and notifies systemd.
    """

    def __init__(self, settings: Settings, certificate: Certificate, notifier: Notifier) -> None:
        self.asked = False
        self.notifier = notifier
        self.servers: Sequence[Stoppable] = ()
        self.tell: Callable[[], None] = lambda: None
        self.passwords: Callable[[], None] | None = None
        """Reads the password file again; raises ConfigError if it cannot be used."""
        self._settings = settings
        self._certificate = certificate
        self._had_terminal = _has_terminal()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.ask)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, self._hung_up)

    def ask(self) -> None:
        """Stop all servers."""
        self.asked = True
        self.notifier.stopping()
        for server in self.servers:
            server.drain()
        self.tell()

    @contextmanager
    def ending_at_once(self) -> Iterator[None]:
        """Let TERM and INT end the process with exit code 0, whatever the event loop does.

        For what may be killed at any time: nothing is acknowledged yet, and migrations are atomic.
        Enter it in the main thread.
        """
        # Python writes the number of each signal here, even while the main thread waits in C.
        reads, writes = socket.socketpair()
        with reads, writes:
            writes.setblocking(False)
            loops = signal.set_wakeup_fd(writes.fileno())
            thread = threading.Thread(target=self._end_at_once, args=(reads, loops), daemon=True)
            thread.start()
            try:
                yield
            finally:
                signal.set_wakeup_fd(loops)
                writes.shutdown(socket.SHUT_WR)
                thread.join()

    def _end_at_once(self, reads: socket.socket, loops: int) -> None:
        """End the process at TERM or INT; pass other signals on to the event loop's descriptor."""
        while numbers := reads.recv(64):
            if signal.SIGTERM in numbers or signal.SIGINT in numbers:
                self.notifier.stopping()
                log.info("stopped during the start")
                logging.shutdown()
                os._exit(0)
            os.write(loops, numbers)

    def _hung_up(self) -> None:
        if self._had_terminal and not _has_terminal():
            log.info("the terminal was closed: stopping")
            self.ask()
            return
        with self.notifier.reloading():
            self._reload()

    def _reload(self) -> None:
        if self._settings.tls_cert is None:
            log.info("HUP: there is no certificate to reload")
        else:
            self._reload_certificate()
        if self._settings.boskos_password_file is not None and self.passwords is not None:
            self._reload_passwords(self.passwords)

    def _reload_certificate(self) -> None:
        """Reload the certificate for new connections; keep the old one if it cannot be used."""
        try:
            self._certificate.reload()
        except ConfigError as error:
            log.error("HUP: cannot reload the certificate, the old one stays in use: %s", error)
            return
        log.info("HUP: the certificate was reloaded")

    def _reload_passwords(self, read: Callable[[], None]) -> None:
        try:
            read()
        except ConfigError as error:
            log.error("HUP: cannot reload the passwords, the old ones stay in use: %s", error)
        else:
            log.info("HUP: the password file was reloaded")


def _has_terminal() -> bool:
    """Return whether this process has a controlling terminal."""
    try:
        os.close(os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
