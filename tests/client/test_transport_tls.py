"""HTTPS: which servers are trusted, and that no other server gets a request."""

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
"""The certificate of an authority whose key no longer exists."""

SIGNED = HERE / "tls-signed.pem"
"""A key and its certificate for the name `elsewhere.example`, signed by that authority."""

OTHER = HERE.parent / "serve" / "tls-cert.pem"
"""The self-signed certificate of another server."""


@contextmanager
def serving(certificate: Path) -> Iterator[tuple[str, list[bytes]]]:
    """Run a server with a certificate and its key; yield its URL and all its requests."""
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
    """Write certificates into one file; return its path."""
    path = folder / "chain.pem"
    path.write_text("some words\n".join(part.read_text() for part in parts))
    return str(path)


def test_the_server_s_own_certificate_is_trusted(tmp_path: Path) -> None:
    """The server's own certificate is trusted whatever its name, alone or in a list."""
    for file in (str(SIGNED), chain(tmp_path, AUTHORITY, SIGNED), chain(tmp_path, SIGNED, OTHER)):
        with serving(SIGNED) as (url, heard):
            assert Transport(url, "secret", certificate=file).request("GET", "/x") == {}
            assert b"secret" in heard[0]


@pytest.mark.parametrize("file", [AUTHORITY, OTHER])
def test_no_other_certificate_is_trusted(file: Path) -> None:
    """Nor is its authority's certificate, because it also signs servers with other names."""
    with serving(SIGNED) as (url, heard):
        with pytest.raises(UnreachableError, match="certificate"):
            Transport(url, "secret", certificate=str(file)).request("GET", "/x")
        assert heard == []


def test_failures_are_said_in_words() -> None:
    """A server that is not trusted, and one that speaks no TLS; without OpenSSL's own names."""
    with serving(SIGNED) as (url, heard):
        with pytest.raises(UnreachableError) as refused:
            Transport(url, "secret").request("GET", "/x")
        assert "its certificate is not trusted: " in str(refused.value)
        assert "_ssl" not in str(refused.value) and heard == []
        assert "--ca-file or MOORAGE_CA_FILE" in str(refused.value)
    with socket.create_server(("127.0.0.1", 0)) as plain:
        thread = threading.Thread(target=answer_plainly, args=(plain,))
        thread.start()
        with pytest.raises(UnreachableError) as refused:
            Transport(f"https://127.0.0.1:{plain.getsockname()[1]}", "secret").request("GET", "/x")
        thread.join()
    assert str(refused.value).endswith(
        "the TLS handshake failed: is this the address of an HTTPS server?"
    )


@pytest.mark.parametrize("option", ["certificate", "ca_file"])
def test_a_file_that_is_no_certificate_is_named(tmp_path: Path, option: str) -> None:
    """One that is missing, and one with something else in it; without OpenSSL's own names."""
    missing, other = str(tmp_path / "missing.pem"), str(tmp_path / "other.pem")
    Path(other).write_text("no certificate")
    url = "https://127.0.0.1:9"
    with pytest.raises(ValueError, match="cannot") as refused:
        Transport(url, "secret", **{option: missing})  # type: ignore[arg-type] # by name
    assert str(refused.value) == f"cannot read {missing}: No such file or directory"
    with pytest.raises(ValueError, match="PEM") as refused:
        Transport(url, "secret", **{option: other})  # type: ignore[arg-type] # by name
    assert str(refused.value) == f"{other} has no certificate in PEM form"


def answer_plainly(listener: socket.socket) -> None:
    """Answer one connection as a server does that speaks HTTP without TLS."""
    connection, _ = listener.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def test_a_renewed_certificate_is_trusted(tmp_path: Path) -> None:
    """Each connection reads the certificate file again, because servers renew certificates."""
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
