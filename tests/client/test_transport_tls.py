"""HTTPS: which servers are believed, and that no other one is sent anything."""

import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from moorage.client.transport import Transport, UnreachableError

HERE = Path(__file__).parent
AUTHORITY = HERE / "tls-authority.pem"
"""The certificate of an authority, whose key nobody has any more."""

SIGNED = HERE / "tls-signed.pem"
"""A key and its certificate for the name `elsewhere.example`, signed by that authority."""

OTHER = HERE.parent / "serve" / "tls-cert.pem"
"""The certificate of another server, signed by itself."""


@contextmanager
def serving(certificate: Path) -> Iterator[tuple[str, list[bytes]]]:
    """A server with a certificate and its key; yields its URL and all requests that it heard."""
    heard: list[bytes] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with suppress(OSError), connection, context.wrap_socket(connection, True) as secured:
                if request := secured.recv(65536):
                    heard.append(request)
                    secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}", heard
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def chain(folder: Path, *parts: Path) -> str:
    """Write certificates into one file; return its name."""
    path = folder / "chain.pem"
    path.write_text("some words\n".join(part.read_text() for part in parts))
    return str(path)


def test_its_own_certificate_is_believed(tmp_path: Path) -> None:
    """Whatever name it bears, alone or among others."""
    for file in (str(SIGNED), chain(tmp_path, AUTHORITY, SIGNED), chain(tmp_path, SIGNED, OTHER)):
        with serving(SIGNED) as (url, heard):
            assert Transport(url, "secret", certificate=file).request("GET", "/x") == {}
            assert b"secret" in heard[0]


@pytest.mark.parametrize("file", [AUTHORITY, OTHER])
def test_no_other_certificate_is_believed(file: Path) -> None:
    """Nor that of the authority that has signed it: so are those of servers of other names."""
    with serving(SIGNED) as (url, heard):
        with pytest.raises(UnreachableError, match="certificate"):
            Transport(url, "secret", certificate=str(file)).request("GET", "/x")
        assert heard == []


def test_a_renewed_certificate_is_believed(tmp_path: Path) -> None:
    """Who runs for long reads its file anew, as servers get another certificate meanwhile."""
    file = tmp_path / "certificate.pem"
    shutil.copy(OTHER, file)
    with serving(SIGNED) as (url, heard):
        transport = Transport(url, None, certificate=str(file))
        with pytest.raises(UnreachableError, match="certificate"):
            transport.request("GET", "/x")
        file.write_text("nothing yet")
        with pytest.raises(UnreachableError):
            transport.request("GET", "/x")
        shutil.copy(SIGNED, file)
        assert transport.request("GET", "/x") == {}
        assert len(heard) == 1
