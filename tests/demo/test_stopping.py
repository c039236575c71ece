"""Ctrl-C in every phase, `kill -9`, and two examples at once: nothing is left behind."""

import os
import select
import signal
import socket
import subprocess
import time
from pathlib import Path
from threading import Timer

import pytest

from moorage.client.ledger import Ledger
from tests.demo.running import BUILDING, PLAYING, SECONDS, example, line_of, started

pytestmark = pytest.mark.thorough

STILL_SECONDS = 25.0
"""Longer than a request waits for an answer, and than a grant waits for its holder."""

STOP_SECONDS = 2.0
"""How long a reader waits after Ctrl-C."""


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def runs(pid: int) -> bool:
    """Return whether a process runs; one that has ended, and waits to be collected, does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("phase", [PLAYING, BUILDING, "  end       Ctrl-C; nothing is kept"])
def test_ctrl_c_stops_it_at_once(tmp_path: Path, phase: str) -> None:
    """Whatever it is doing, it ends with code 0, and its server and its files are gone."""
    with started(tmp_path) as demo:
        while (line := line_of(demo)) != phase:
            assert line
        before = children(demo.pid)
        began = time.monotonic()
        demo.send_signal(signal.SIGINT)
        output, errors = demo.communicate(timeout=SECONDS)
        took = time.monotonic() - began
    assert (demo.returncode, errors) == (0, "")
    assert output.endswith("demo: stopped; nothing is kept\n")
    assert took <= STOP_SECONDS
    assert not any(map(runs, before))
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_a_server_that_hangs(tmp_path: Path) -> None:
    """It waits for it for a while, then kills it, and nothing but a sentence is printed."""
    with started(tmp_path) as demo:
        while (line := line_of(demo)) != "  end       Ctrl-C; nothing is kept":
            assert line
        (server,) = children(demo.pid)
        os.kill(server, signal.SIGSTOP)
        demo.send_signal(signal.SIGINT)
        output, errors = demo.communicate(timeout=SECONDS)
    assert (demo.returncode, errors) == (0, "")
    assert output.endswith("demo: stopped; nothing is kept\n")
    assert not runs(server)
    assert list(tmp_path.iterdir()) == []


def test_it_says_that_its_server_has_ended(tmp_path: Path) -> None:
    """It does not go on without one."""
    with started(tmp_path) as demo:
        while (line := line_of(demo)) != "  end       Ctrl-C; nothing is kept":
            assert line
        (server,) = children(demo.pid)
        os.kill(server, signal.SIGKILL)
        _, errors = demo.communicate(timeout=SECONDS)
    assert demo.returncode == 1
    assert errors.startswith("demo: the server has ended (-9)")


def test_it_survives_a_machine_that_stands_still(tmp_path: Path) -> None:
    """Meanwhile grants are taken back and agents fall silent; afterwards jobs go on."""
    with example(tmp_path) as shown:
        (server,) = children(shown.process.pid)
        os.kill(server, signal.SIGSTOP)
        with pytest.raises(subprocess.TimeoutExpired):
            shown.process.wait(STILL_SECONDS)
        os.kill(server, signal.SIGCONT)
        watch, kinds = Ledger(shown.admin).watch(kinds=("lease", "consumer")), set()
        late = Timer(SECONDS, watch.close)
        late.start()
        for change in watch:
            kinds.add(change.kind)
            if kinds == {"lease", "consumer"}:
                break
        late.cancel()
        assert kinds == {"lease", "consumer"}
        assert shown.process.poll() is None


def test_a_killed_example_leaves_no_server(tmp_path: Path) -> None:
    """Its server ends by itself, and the next example removes its folder."""
    with started(tmp_path) as demo:
        while line_of(demo) != BUILDING:
            pass
        (server,) = children(demo.pid)
        assert runs(server), "the control"
        ended = os.pidfd_open(server)
        demo.kill()
        demo.communicate()
    poll = select.poll()
    poll.register(ended)
    assert poll.poll(SECONDS * 1000)
    os.close(ended)
    (left,) = tmp_path.iterdir()
    with example(tmp_path):
        assert not left.exists()
        assert len([*tmp_path.iterdir()]) == 1
    assert list(tmp_path.iterdir()) == []


def test_two_examples_run_at_once(tmp_path: Path) -> None:
    """Neither removes the folder of the other."""
    with example(tmp_path) as one, example(tmp_path) as other:
        assert one.named["url"] != other.named["url"]
        assert len([*tmp_path.iterdir()]) == 2
        assert one.admin.request("GET", "/v1/pools")["pools"]


def test_it_says_at_once_that_its_address_is_taken(tmp_path: Path) -> None:
    """Before it plays anything; it says what to change."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with started(tmp_path, listen=address) as demo:
            output, errors = demo.communicate(timeout=SECONDS)
    assert (output, demo.returncode) == ("", 1)
    assert errors.startswith(f"demo: cannot serve on {address}: Address already in use; ")
    assert "--listen 127.0.0.1:0" in errors


def test_it_refuses_what_is_not_an_address(tmp_path: Path) -> None:
    """It says how to write one."""
    with started(tmp_path, listen="8778") as demo:
        _, errors = demo.communicate(timeout=SECONDS)
    assert errors == "demo: --listen 8778: write HOST:PORT, for example 127.0.0.1:9000\n"
    assert demo.returncode == 1
