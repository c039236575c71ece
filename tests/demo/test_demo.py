"""The example of `make demo`: complete, alive, the same for the same seed, and gone afterwards."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

from moorage.client.admission import Admission
from moorage.client.fleet import Fleet
from moorage.client.ledger import Ledger
from moorage.client.transport import Transport

ROOT = Path(__file__).resolve().parents[2]
READY = re.compile(r"demo: ready after \d+ s: open (http://\S+)/ui ")
TOKEN = re.compile(r"demo: the token of the (\w+): (\S+)")
HOSTS, JOBS = 700, 40
SECONDS = 60


@contextmanager
def example(folder: Path, seed: int) -> Iterator[tuple[Transport, subprocess.Popen[str]]]:
    """Start the example, and stop it with Ctrl-C."""
    command = [sys.executable, "-m", "demo", "--listen", "127.0.0.1:0", "--seed", str(seed)]
    command += ["--hosts", str(HOSTS), "--jobs", str(JOBS)]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        tokens, url = {}, ""
        assert process.stdout is not None
        for line in process.stdout:
            if found := TOKEN.match(line):
                tokens[found[1]] = found[2]
            if found := READY.match(line):
                url = found[1]
                break
        try:
            yield Transport(url, tokens["operator"]), process
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            assert process.wait(SECONDS) == 0


def seen(transport: Transport) -> dict[str, object]:
    """Return what does not change while the example lives."""
    ledger, fleet = Ledger(transport), Fleet(transport)
    return {
        "providers": [(one.uuid, one.name) for one in ledger.providers()],
        "agents": [(one.id, one.group) for one in fleet.agents()],
        "pools": [(one.name, one.units, one.paused) for one in Admission(transport).pools()],
    }


def test_the_example_is_complete_and_repeats(tmp_path: Path) -> None:
    """Everything that the pages show is there; nothing is left in the temporary folder."""
    with example(tmp_path, 7) as (transport, _):
        first = seen(transport)
        pools = {one.name: one for one in Admission(transport).pools()}
        assert {one.waiting > 0 for one in pools.values()} >= {True}
        assert pools["install/aws"].paused
        assert pools["gpu"].slots
        assert sum(one.occupied + one.waiting for one in pools.values()) >= JOBS - 2
        lines = {one.resource_class: one for one in Ledger(transport).capacity().lines}
        assert lines["VCPU"].used > 0
        assert any(one.failure is not None for one in Fleet(transport).agents())
        (holder, *_) = Admission(transport).leases(state="granted")
        assert holder.labels["build"].startswith("https://")
    assert list(tmp_path.iterdir()) == []
    with example(tmp_path, 7) as (transport, _):
        assert seen(transport) == first


def test_the_example_lives(tmp_path: Path) -> None:
    """Its jobs end and others begin, as the change feed shows."""
    with example(tmp_path, 1) as (transport, _):
        watch, kinds = Ledger(transport).watch(kinds=("lease", "consumer")), set()
        late = Timer(SECONDS, watch.close)
        late.start()
        for change in watch:
            kinds.add(change.kind)
            if kinds == {"lease", "consumer"}:
                break
        late.cancel()
        assert kinds == {"lease", "consumer"}
