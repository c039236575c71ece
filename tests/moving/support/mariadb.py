"""A private MariaDB in a folder, reachable only through a socket there."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pymysql

from tests.support.closing import Closing
from tests.support.guard import Guard

SECONDS_MAX = 60.0
TABLES = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
FRESH = "CREATE DATABASE mysql;\nUSE mysql;\n"


class MariaDb(Closing):
    """One server with the administrator `root`, and no other account. Context manager.

    It ends when this process does, in any way. Nothing is synced to the disk.
    """

    def __init__(self, programs: Path) -> None:
        """Make the system tables and start; wait until it is ready.

        Args:
            programs: the folder that `scripts/mariadb` has made.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="moorage-mariadb-"))
        self._programs = programs.resolve()
        self._data = self._folder / "data"
        self._data.mkdir()
        self.socket = str(self._folder / "socket")
        self._bootstrap()
        self._start()

    def _command(self) -> list[str]:
        user = ["--user=root"] if os.geteuid() == 0 else []
        return [
            str(self._programs / "mariadbd"),
            "--no-defaults",
            *user,
            f"--datadir={self._data}",
            f"--lc-messages-dir={self._programs / 'share'}",
            f"--character-sets-dir={self._programs / 'share' / 'charsets'}",
            f"--log-error={self._folder / 'log'}",
            f"--tmpdir={self._folder}",
        ]

    def _bootstrap(self) -> None:
        """Make the tables that every server needs."""
        share = self._programs / "share"
        text = FRESH + "".join((share / name).read_text() for name in TABLES)
        command = [*self._command(), "--bootstrap", "--skip-grant-tables", "--innodb=ON"]
        done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
        assert done.returncode == 0, self._log() + done.stdout + done.stderr

    def _start(self) -> None:
        """Start the server; it says itself when it is ready, as to systemd."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
            notices.bind(str(self._folder / "notices"))
            notices.settimeout(SECONDS_MAX)
            self._process = subprocess.Popen(
                [
                    *self._command(),
                    f"--socket={self.socket}",
                    f"--pid-file={self._folder / 'pid'}",
                    "--skip-networking",
                    "--innodb-flush-log-at-trx-commit=0",
                    "--innodb-doublewrite=0",
                    "--innodb-buffer-pool-size=64M",
                    "--max-connections=300",
                    "--performance-schema=OFF",
                ],
                env={**os.environ, "NOTIFY_SOCKET": str(self._folder / "notices")},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            self._guard = Guard(self._process.pid, "KILL")
            try:
                while b"READY=1" not in notices.recv(4_096):
                    pass
            except TimeoutError:
                self.close()
                raise AssertionError(f"MariaDB does not start: {self._log()}") from None
        self.run("DELETE FROM mysql.global_priv WHERE User = ''", "FLUSH PRIVILEGES")

    def _log(self) -> str:
        log = self._folder / "log"
        return log.read_text()[-3_000:] if log.exists() else ""

    def run(self, *statements: str, database: str | None = None) -> list[tuple[object, ...]]:
        """Run statements as the administrator; return the rows of the last one."""
        with (
            pymysql.connect(
                user="root", unix_socket=self.socket, database=database, autocommit=True
            ) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def create(self, database: str, *, character_set: str = "utf8mb3") -> str:
        """Create a database as the deployment tools do; return its address."""
        self.run(f"CREATE DATABASE `{database}` CHARACTER SET {character_set}")
        return self.url(database)

    def account(self, name: str, rights: str, database: str) -> str:
        """Create an account with some rights to a database; return its address there."""
        self.run(
            f"CREATE USER '{name}'@'localhost' IDENTIFIED BY 'PASSWORD'",
            f"GRANT {rights} ON `{database}`.* TO '{name}'@'localhost'",
        )
        return self.url(database, name, "PASSWORD")

    def url(self, database: str, user: str = "root", password: str = "") -> str:
        """Return the address of a database."""
        secret = f":{password}" if password else ""
        return f"mysql+pymysql://{user}{secret}@localhost/{database}?unix_socket={self.socket}"

    def close(self) -> None:
        """Stop the server and remove its folder."""
        self._guard.close()
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
