"""Runs the example: `make demo`, or `make demo ARGS="--listen 127.0.0.1:9000"`."""

import argparse
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from demo.fleet import Fleet
from demo.jobs import Jobs
from moorage.client.transport import Transport

READY = re.compile(r"moorage: serving (http://\S+) ")
STOP_SECONDS = 15.0
TICK_SECONDS = 0.25
ROLES = ("reader", "operator")


def main() -> int:
    """Run it until a signal stops it; return the exit code."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:8778", help="HOST:PORT of the server")
    parser.add_argument("--hosts", type=int, default=2_000, help="machines of the fleet")
    parser.add_argument("--jobs", type=int, default=300, help="jobs at a time")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another example")
    words = parser.parse_args()
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="moorage-demo-")))
        url = stack.enter_context(served(folder, words.listen))
        token = (folder / "demo.sqlite.token").read_text().strip()
        transport = Transport(url, token)
        dice = random.Random(words.seed)
        jobs, fleet = Jobs(transport, words.jobs, dice), Fleet(transport, words.hosts, dice)
        say(f"demo: building {words.hosts} machines and {words.jobs} jobs")
        jobs.build()
        fleet.build()
        for role in ROLES:
            made = transport.request("POST", "/v1/tokens", {"name": role, "role": role})
            say(f"demo: the token of the {role}: {made['token']}")
        seconds = time.monotonic() - began
        say(f"demo: ready after {seconds:.0f} s: open {url}/ui and sign in with one of them")
        while not stop.wait(TICK_SECONDS):
            jobs.tick()
            fleet.tick()
    say("demo: stopped; nothing is kept")
    return 0


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


@contextmanager
def served(folder: Path, listen: str) -> Iterator[str]:
    """Start a server with an empty database in a folder, and return its address."""
    database = f"sqlite:///{folder / 'demo.sqlite'}"
    command = [sys.executable, "-m", "moorage", "serve", "--listen", listen]
    command += ["--database", database, "--no-access-log", "--log-level", "error"]
    log = folder / "serve.log"
    # A session of its own: Ctrl-C reaches this process, which then stops the server. Its log would
    # hide the address: the audit trail of the fleet has hundreds of lines.
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            for line in process.stdout:
                found = READY.match(line)
                if found:
                    yield found[1]
                    return
            sys.exit(f"demo: the server does not start:\n{log.read_text().rstrip()}")
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
