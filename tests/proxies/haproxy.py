"""A real HAProxy with the configuration of the guide: `make proxies` provides it."""

import os
import re
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from tests.proxies.process import ProxyProcess

OF_LOCALHOST = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
OF_LOCALHOST += " -addext subjectAltName=DNS:localhost"

(CONFIGURATION,) = re.findall(
    r"^```haproxy\n(.*?)^```$", Path("docs/howto/operate.md").read_text(), re.DOTALL | re.MULTILINE
)
"""What the guide says."""


class HaProxy(ProxyProcess):
    """HAProxy before a server; `url` is its address. Use it as a context manager."""

    def __init__(self, folder: Path, upstream: str, configuration: str = CONFIGURATION) -> None:
        """Start it.

        Args:
            folder: for its files.
            upstream: the address of the server behind it.
            configuration: the guide's, of which the addresses and the certificate are replaced.
        """
        folder.mkdir()
        self.certificate, key = folder / "certificate.pem", folder / "key.pem"
        made = f"openssl req {OF_LOCALHOST} -keyout {key} -out {self.certificate}"
        subprocess.run(made.split(), check=True, capture_output=True)
        both = folder / "both.pem"
        both.write_text(self.certificate.read_text() + key.read_text())
        # It inherits the socket, so that nobody else can take the port.
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.url = f"https://localhost:{listener.getsockname()[1]}"
            replaced = {
                ":443": f"fd@{listener.fileno()}",
                "/etc/haproxy/placement.pem": str(both),
                "127.0.0.1:8778": urlsplit(upstream).netloc,
            }
            for old, new in replaced.items():
                assert configuration.count(old) == 1, old
                configuration = configuration.replace(old, new)
            file = folder / "haproxy.cfg"
            file.write_text(configuration)
            process = subprocess.Popen(
                [os.environ["HAPROXY_PROGRAM"], "-db", "-f", file], pass_fds=[listener.fileno()]
            )
        super().__init__(process)
