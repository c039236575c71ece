"""The PostgreSQL server that tests start ends with them."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.guard import ended

END_SECONDS = 30.0
OWNER = """
from tests.support.cluster import Cluster
cluster = Cluster()
print(cluster.pid, cluster.folder, flush=True)
input()
"""


def test_ends_with_its_owner() -> None:
    """The server stops even if the process that started it is killed."""
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().decode().split()
        server = os.pidfd_open(int(pid))
        try:
            assert not ended(server, 0.0)
            owner.send_signal(signal.SIGKILL)
            assert ended(server, END_SECONDS)
            assert not (Path(folder) / "data/postmaster.pid").exists()
        finally:
            os.close(server)
            shutil.rmtree(folder)
