"""Starts the original on a database, and makes its schema."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.closing import Closing
from tests.support.guard import Guard

SCRIPT = Path(__file__).with_name("serving.py")
ROOT = Path(__file__).resolve().parents[3]
PYTHON = Path(os.environ.get("ORIGINAL_PYTHON", ROOT / ".venv-moving/bin/python"))
"""The interpreter that has the original."""

SETTINGS = """\
[api]
auth_strategy = noauth2
[placement_database]
connection = {database}
max_pool_size = 16
[oslo_policy]
enforce_scope = true
[DEFAULT]
log_file = {log}
default_log_levels = placement=WARNING,alembic=WARNING
"""
LATEST = "1.39"


class Original(Closing):
    """The original at `url`, on a database at one of its own addresses. Context manager."""

    def __init__(
        self,
        database: str,
        *,
        python: Path = PYTHON,
        settings: str = SETTINGS,
        certificate: Path | None = None,
    ) -> None:
        """Make its schema, as `placement-manage db sync` does, and start it.

        `certificate` is a folder, see `tests.support.certificates`: it serves HTTPS.
        """
        self.database = database
        self._certificate = [] if certificate is None else [certificate]
        self._folder = tempfile.TemporaryDirectory(prefix="moorage-original-")
        self.folder = Path(self._folder.name)
        (self.folder / "placement.conf").write_text(
            settings.format(database=database.replace("%", "%%"), log=self.folder / "log")
        )
        self._python = python
        synced = subprocess.run(
            [python, SCRIPT, "sync", self.folder], capture_output=True, text=True, check=False
        )
        assert synced.returncode == 0, synced.stderr
        self.start()

    def start(self) -> None:
        """Start it, and wait until it serves."""
        self._process = subprocess.Popen(
            [self._python, SCRIPT, "serve", self.folder, *self._certificate],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._guard = Guard(self._process.pid, "KILL")
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("original: serving "), (self.folder / "log").read_text()[-3_000:]
        self.url = line.split()[-1]

    def stop(self) -> None:
        """Stop it; what it has acknowledged stays in its database."""
        self._guard.close()
        self._process.kill()
        self._process.communicate()

    def close(self) -> None:
        """Stop it, and remove its settings."""
        self.stop()
        self._folder.cleanup()


class Asking:
    """Requests to a Placement API, each on a connection of its own."""

    def __init__(self, url: str, *, token: str = "admin", version: str = LATEST) -> None:
        parts = urlsplit(url)
        self._connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self.headers: Mapping[str, str] = {}
        """Those of the newest answer, by their names in lower case."""
        self._prefix = parts.path.rstrip("/")
        self._headers = {
            "X-Auth-Token": token,
            "X-Roles": "admin,service",
            "OpenStack-API-Version": f"placement {version}",
            "Accept": "application/json",
        }

    def __call__(
        self, method: str, path: str, body: Any = None, *, version: str | None = None
    ) -> tuple[int, Any]:
        """Send a request; return the status and the decoded answer, None if it is empty."""
        headers = dict(self._headers)
        if version is not None:
            headers["OpenStack-API-Version"] = f"placement {version}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        sent = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, self._prefix + path, sent, headers)
            answer = self._connection.getresponse()
            text = answer.read()
        finally:
            self._connection.close()
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, json.loads(text) if text else None

    def get(self, path: str) -> Any:
        """Return the answer of a GET, which must succeed."""
        status, answer = self("GET", path)
        assert status in (200, 204), (path, status, answer)
        return answer

    def do(self, method: str, path: str, body: Any = None, *, version: str | None = None) -> Any:
        """Send a request, which must succeed; return the answer."""
        status, answer = self(method, path, body, version=version)
        assert 200 <= status < 300, (method, path, status, answer)
        return answer
