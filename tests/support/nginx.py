"""A real nginx before a server. Standard library only: other environments use it."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from socket import SOMAXCONN, create_connection, socket

from tests.support.closing import Closing
from tests.support.guard import Guard

CONFIGURATION = """
daemon off;
{user}
pid nginx.pid;
error_log error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
{servers}
}}
"""


class Nginx(Closing):
    """Serves several configurations, each at its own free port. Context manager.

    `urls` has the address of each; it ends when this process does.
    """

    def __init__(self, program: Path, servers: Mapping[str, str]) -> None:
        """Start it.

        Args:
            program: the executable.
            servers: by name, what a block `server` has besides its port, such as a `location`.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="moorage-nginx-")
        folder = Path(self._folder.name)
        sockets = {name: _listening() for name in servers}
        ports = {name: one.getsockname()[1] for name, one in sockets.items()}
        self.urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
        blocks = (
            f"    server {{ listen 127.0.0.1:{ports[name]}; {text} }}"
            for name, text in servers.items()
        )
        (folder / "nginx.conf").write_text(
            CONFIGURATION.format(
                servers="\n".join(blocks), user="" if os.geteuid() else "user root;"
            )
        )
        numbers = [one.fileno() for one in sockets.values()]
        self._process = subprocess.Popen(
            [program.absolute(), "-p", folder, "-c", "nginx.conf", "-e", "error.log"],
            # It takes over listening sockets, as when its executable is replaced: no port is lost.
            env={"NGINX": "".join(f"{number};" for number in numbers)},
            pass_fds=numbers,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        # Not only the parent: its worker outlives it.
        self._guard = Guard(self._process.pid, "KILL", group=True)
        for one in sockets.values():
            one.close()
        try:
            # Connections wait in the backlog until it serves, and end if it cannot.
            with create_connection(("127.0.0.1", next(iter(ports.values()))), 10.0) as first:
                first.sendall(b"GET / HTTP/0.9\r\n\r\n")
                first.recv(1)
        except OSError as error:
            said = (folder / "error.log").read_text()
            self.close()
            raise RuntimeError(f"nginx does not start: {said}") from error

    def close(self) -> None:
        """End it."""
        self._guard.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()


def _listening() -> socket:
    made = socket()
    made.bind(("127.0.0.1", 0))
    made.listen(SOMAXCONN)
    return made
