"""The certificate of the server, read again when its files were renewed."""

import asyncio
import logging
import os
import ssl

from moorage.config import ConfigError
from moorage.config.settings import Settings

LOOK_SECONDS = 30.0
"""How often to look whether the files have changed. They are read when two looks see the same, so
that a certificate is not tried with the key of another one that is about to be replaced."""

log = logging.getLogger("moorage.serve")

_Stamp = tuple[int, ...] | None


class Certificate:
    """The TLS context of new connections."""

    def __init__(self, settings: Settings) -> None:
        """Read the files. Raises ConfigError: they cannot be used."""
        self._settings = settings
        self.context: ssl.SSLContext | None = None
        """None: without TLS."""
        self.reload()

    def reload(self) -> None:
        """Read the files again; if they cannot be used, the old ones stay. Raises ConfigError."""
        if self._settings.tls_cert is not None:
            self._seen = self._stamps()
            self.context = context_of(self._settings)

    async def follow(self) -> None:
        """Read the files again whenever they have changed, for ever."""
        before = None
        while self._settings.tls_cert is not None:
            await asyncio.sleep(LOOK_SECONDS)
            now = await asyncio.to_thread(self._stamps)
            if now == before and now != self._seen:
                self._renewed()
            before = now

    def _renewed(self) -> None:
        try:
            self.reload()
        except ConfigError as error:
            log.error("the files have changed, but the old certificate stays in use: %s", error)
        else:
            log.info("the files have changed: the certificate was reloaded")

    def _stamps(self) -> list[_Stamp]:
        files = (self._settings.tls_cert, self._settings.tls_key)
        return [_stamp(file) for file in files if file is not None]


def context_of(settings: Settings) -> ssl.SSLContext:
    """Return the TLS context for HTTPS. Raises ConfigError: the files cannot be used."""
    assert settings.tls_cert is not None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Without a password, OpenSSL would prompt on the terminal for that of an encrypted key.
        context.load_cert_chain(settings.tls_cert, settings.tls_key, password="")
    except OSError as error:  # ssl's own errors are OSErrors
        raise ConfigError(f"tls_cert and tls_key cannot be used: {error}") from None
    return context


def _stamp(path: str) -> _Stamp:
    """Return what changes with the content of a file, and with the right to read it."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
