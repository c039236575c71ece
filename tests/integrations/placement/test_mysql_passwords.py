"""MySQL 8 without TLS asks for a password in a way that PyMySQL knows only with another package."""

import socket
import struct
import threading
from collections.abc import Iterator

import pymysql._auth
import pytest

from moorage.integrations.placement.addresses import address_of
from moorage.integrations.placement.database import Database
from moorage.integrations.placement.source_error import SourceError
from moorage.integrations.placement.target import opened

LONG_PASSWORD, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH = 1, 1 << 9, 1 << 15, 1 << 19
ABILITIES = LONG_PASSWORD | PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH
SALT = b"0123456789abcdefghij"
GREETING = (
    b"\x0a8.0.36\0"
    + struct.pack("<I", 1)
    + SALT[:8]
    + struct.pack("<xHBHHB10x", ABILITIES & 0xFFFF, 255, 2, ABILITIES >> 16, len(SALT) + 1)
    + SALT[8:]
    + b"\0caching_sha2_password\0"
)
FULL_PROOF, PUBLIC_KEY = b"\x01\x04", b"\x01a public key"


def _packet(number: int, content: bytes) -> bytes:
    return struct.pack("<I", len(content))[:3] + bytes([number]) + content


@pytest.fixture
def mysql() -> Iterator[str]:
    """Serve the beginning of MySQL's protocol, up to the public key; yield an address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                for number, content in ((0, GREETING), (2, FULL_PROOF), (4, PUBLIC_KEY)):
                    connection.sendall(_packet(number, content))
                    connection.recv(4_096)

        serving = threading.Thread(target=serve)
        serving.start()
        yield f"mysql://u:secret@127.0.0.1:{listening.getsockname()[1]}/placement"
        serving.join()


@pytest.mark.parametrize("writes", [False, True])
def test_the_missing_package_is_named(
    mysql: str, writes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an import and by an export, without the password."""
    monkeypatch.setattr(pymysql._auth, "_have_cryptography", False)
    url = address_of(mysql)
    with (
        pytest.raises(SourceError, match=r"pip install 'pymysql\[rsa\]', or use TLS") as refused,
        opened(url) if writes else Database(url).snapshot(),
    ):
        pass
    assert "secret" not in str(refused.value)
