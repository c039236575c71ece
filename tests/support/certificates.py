"""Self-signed certificates of test servers."""

import base64
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificate:
    """A folder with a key (`key.pem`) and its certificate (`cert.pem`)."""

    folder: Path

    @property
    def bundle(self) -> str:
        """The certificate as Kubernetes' documents have it."""
        return base64.b64encode((self.folder / "cert.pem").read_bytes()).decode()

    def server(self) -> ssl.SSLContext:
        """Return what a server needs."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.folder / "cert.pem", self.folder / "key.pem")
        return context

    def client(self) -> ssl.SSLContext:
        """Return what a client needs that trusts it."""
        return ssl.create_default_context(cafile=str(self.folder / "cert.pem"))


def certificate(folder: Path, *names: str) -> Certificate:
    """Make a certificate of names such as `DNS:localhost` or `IP:127.0.0.1`, for two days."""
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test"
    extension = ["-addext", f"subjectAltName={','.join(names)}"]
    files = ["-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(
        [*command.split(), *files, *extension], cwd=folder, check=True, capture_output=True
    )
    return Certificate(folder)
