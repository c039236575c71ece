"""A real nginx before a server: `make proxies` provides it."""

import os
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from tests.proxies.process import ProxyProcess

CONFIGURATION = """
daemon off;
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
{locations}
    }}
}}
"""


class Nginx(ProxyProcess):
    """nginx with some locations; `url` is its address. Use it as a context manager."""

    def __init__(self, folder: Path, upstream: str, locations: str) -> None:
        """Start it.

        Args:
            folder: for its files.
            upstream: the address of the server behind it.
            locations: its configuration, in which UPSTREAM stands for that address.
        """
        folder.mkdir()
        file = folder / "nginx.conf"
        # It inherits the socket, as in an upgrade, so that nobody else can take the port.
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            shown = locations.replace("UPSTREAM", urlsplit(upstream).netloc)
            file.write_text(
                CONFIGURATION.format(
                    user="user root root;" if os.geteuid() == 0 else "",
                    folder=folder,
                    port=port,
                    locations=shown,
                )
            )
            command = [os.environ["NGINX_PROGRAM"], "-e", str(folder / "error.log")]
            process = subprocess.Popen(
                [*command, "-c", str(file), "-p", str(folder)],
                env={**os.environ, "NGINX": f"{listener.fileno()};"},
                pass_fds=[listener.fileno()],
            )
        super().__init__(process)
        self.url = f"http://127.0.0.1:{port}"
