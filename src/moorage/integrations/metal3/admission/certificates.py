"""The certificate of the webhook, read again when its files have changed."""

import logging
import os
import ssl
from pathlib import Path

log = logging.getLogger("moorage.metal3")

Version = tuple[tuple[int, int, int], ...]


class CertificateError(Exception):
    """The certificate cannot be used; the message says why."""


class Certificates:
    """What a server offers: the certificate that is in the files when a client connects.

    Connections that are open keep theirs. While the files cannot be used, as in the middle of a
    renewal, new connections get the last certificate.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read the files. Raises CertificateError."""
        self._files = (certificate, key)
        try:
            self._read_as = self._version()
            self._context = self._loaded()
        except (OSError, ssl.SSLError) as error:
            raise CertificateError(f"{certificate}, {key}: {error}") from error
        self._trouble = ""
        self.server = self._loaded()
        """What the server listens with."""
        self.server.sni_callback = self._chosen

    def _chosen(self, connection: ssl.SSLObject, name: str | None, asked: ssl.SSLContext) -> None:
        """Give a new connection the certificate; OpenSSL asks at the start of each handshake."""
        self._renew()
        connection.context = self._context

    def _renew(self) -> None:
        try:
            version = self._version()
            if version == self._read_as:
                return
            self._context, self._read_as, self._trouble = self._loaded(), version, ""
            log.info("%s has changed: it is read again", self._files[0])
        except (OSError, ssl.SSLError) as error:
            if str(error) != self._trouble:
                log.warning("%s cannot be used, the last one is offered: %s", self._files[0], error)
            self._trouble = str(error)

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*self._files)
        return context

    def _version(self) -> Version:
        found = [os.stat(path) for path in self._files]
        return tuple((one.st_ino, one.st_mtime_ns, one.st_size) for one in found)
