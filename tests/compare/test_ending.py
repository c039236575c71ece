"""A run leaves no servers behind, however it ends."""

import os
import re
import signal
import subprocess
import sys

import pytest

from tests.support.guard import ended

END_SECONDS = 30.0
STARTED = re.compile(r"\(process (\d+)\)")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_servers_end_with_the_run(how: signal.Signals) -> None:
    """This includes the servers of its workers, which the signal does not reach."""
    command = [sys.executable, "-m", "tests.compare", "--requests", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        servers = [os.pidfd_open(int(pid)) for pid in STARTED.findall(run.stdout.readline())]
        assert len(servers) == 2
        assert not any(ended(server, 0.0) for server in servers)
        run.send_signal(how)
        assert all(ended(server, END_SECONDS) for server in servers)
        # The pipe closes when the workers have ended as well.
        run.stdout.read()
    for server in servers:
        os.close(server)
