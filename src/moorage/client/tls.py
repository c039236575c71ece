"""TLS to a server: by the authorities of the system, or by exactly one certificate.

Part of the single file that runs on Python 3.9, see `run/`.
"""

from __future__ import annotations

import http.client
import re
import ssl

PEM_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

X509_PARTIAL_CHAIN = ssl.VerifyFlags(0x80000)
"""OpenSSL's X509_V_FLAG_PARTIAL_CHAIN; Python has a name for it only since 3.10."""


class PinnedConnection(http.client.HTTPSConnection):
    """A connection that accepts only a server with one of the certificates in a file.

    A certificate that is signed by one of them is not enough: the file may contain an authority's
    certificate, and host names are not checked, so the token could go to another of its servers.
    """

    def __init__(self, host: str, port: int | None, timeout: float, file: str) -> None:
        """Prepare; `file` has the certificates (PEM). Raises OSError, ValueError."""
        super().__init__(host, port, timeout=timeout, context=tls_context(file))
        self._file = file
        self._pinned = _certificates(file)

    def connect(self) -> None:
        """Connect. Raises OSError: the server presents another certificate."""
        super().connect()
        if self.sock.getpeercert(binary_form=True) not in self._pinned:
            self.close()
            raise ssl.SSLCertVerificationError(
                f"the server does not present the certificate in {self._file}"
            )


def tls_context(certificate: str | None, ca_file: str | None = None) -> ssl.SSLContext:
    """Return how to speak TLS; the arguments are those of `Transport`.

    Raises ValueError: the file cannot be read, or has no certificate.
    """
    file = certificate or ca_file
    try:
        context = ssl.create_default_context(cafile=file)
    except ssl.SSLError:
        raise ValueError(f"{file} has no certificate in PEM form") from None
    except OSError as error:
        raise ValueError(f"cannot read {file}: {error.strerror}") from None
    if certificate is not None:
        context.check_hostname = False
        context.verify_flags |= X509_PARTIAL_CHAIN
    return context


def _certificates(file: str) -> list[bytes]:
    """Return the certificates in a PEM file. Raises OSError, ValueError."""
    with open(file, encoding="latin-1") as opened:  # may contain other text between them
        return [ssl.PEM_cert_to_DER_cert(one) for one in PEM_CERTIFICATE.findall(opened.read())]
