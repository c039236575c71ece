"""Certificates, keys and authorities in PEM files."""

import ssl
from collections.abc import Iterable
from pathlib import Path


class PemError(ValueError):
    """A file cannot be used; the message names it in one line."""


def serving(certificate: str | Path, key: str | Path | None) -> ssl.SSLContext:
    """Return how to serve TLS; `key` None: it is in the same file. Raises PemError."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    files = [str(one) for one in (certificate, key) if one is not None]
    _check_readable(files)
    try:
        # Without a password, OpenSSL would prompt on the terminal for that of an encrypted key.
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:  # ssl's own errors are OSErrors
        raise PemError(
            f"{' and '.join(files)}: this is not a certificate with its key, in PEM and without a"
            f" passphrase: {error}"
        ) from error
    return context


def trusting(path: str) -> ssl.SSLContext:
    """Return how to reach servers of the authorities in a file. Raises PemError."""
    _check_readable([path])
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        raise PemError(f"{path}: the file has no certificate of an authority, in PEM") from error


def _check_readable(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            with open(path, "rb") as file:
                file.read(1)
        except OSError as error:  # the errors of ssl do not name the file
            raise PemError(f"{path}: {error.strerror or error}") from error
