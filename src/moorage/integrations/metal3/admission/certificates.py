"""The certificate of the webhook, read again when its files have changed."""

import logging
import os
import ssl
from pathlib import Path

from moorage.integrations.pem_files import PemError, serving

log = logging.getLogger("moorage.metal3")

Version = tuple[tuple[int, int, int], ...]


class Certificates:
    """What a server offers: the certificate that is in the files when a client connects.

    Connections that are open keep theirs. While the files cannot be used, as in the middle of a
    renewal, new connections get the last certificate.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read the files. Raises PemError."""
        self._files = (certificate, key)
        self.server = serving(*self._files)
        """What the server listens with."""
        self._read_as = self._version()
        self._context = serving(*self._files)
        self._trouble = ""
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
            self._context, self._read_as, self._trouble = serving(*self._files), version, ""
            log.info("%s has changed: it is read again", self._files[0])
        except (OSError, PemError) as error:
            if str(error) != self._trouble:
                log.warning("the last certificate is offered: %s", error)
            self._trouble = str(error)

    def _version(self) -> Version:
        found = [os.stat(path) for path in self._files]
        return tuple((one.st_ino, one.st_mtime_ns, one.st_size) for one in found)
