"""`make ironic`: a real Ironic with fake hardware until Ctrl-C, and how clients reach it."""

import argparse
import re
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType

from tests.support.ironic import DELAYS, ROOT, Ironic, NoIronic, Setup
from tests.support.suites import print_line

DELAY = re.compile(rf"({'|'.join(DELAYS)})=(\d+(?:,\d+)?)")


def delay(text: str) -> tuple[str, str]:
    """Read `deploy=3` or `power=1,5`: an operation and its whole seconds. Raises ValueError."""
    if not (found := DELAY.fullmatch(text)):
        raise ValueError(text)
    return found[1], found[2]


def arguments() -> argparse.Namespace:
    """Read the command line; its defaults are those of Setup."""
    usual = Setup()
    parser = argparse.ArgumentParser(
        prog="make ironic ARGS=", description=__doc__, usage='make ironic ARGS="[FOLDER] [OPTIONS]"'
    )
    add = parser.add_argument
    add("folder", nargs="?", type=Path, help="keeps its files (default: a temporary one)")
    add("--nodes", type=int, default=usual.nodes, help="node-1 to node-N (%(default)s)")
    add(
        *("--delay", "-d"),
        type=delay,
        action="append",
        default=[],
        metavar="KIND=SECONDS",
        help="whole seconds, or a range such as 3,6; those of deploy (3) apply twice to each "
        f"deployment; kinds: {', '.join(DELAYS)}",
    )
    add(
        *("--max-concurrent-deploy", "-m"),
        type=int,
        default=usual.max_concurrent_deploy,
        help="Ironic's own limit (%(default)s)",
    )
    add("--workers", type=int, default=usual.workers, help="threads of Ironic (%(default)s)")
    add("--cleaning", action="store_true", help="clean nodes before they become available")
    add("--port", type=int, default=usual.port, help="of the API; 0: a free one (%(default)s)")
    return parser.parse_args()


def setup(asked: argparse.Namespace) -> Setup:
    """Return the setup of a command line."""
    usual = Setup()
    return replace(
        usual,
        nodes=asked.nodes,
        delays={**usual.delays, **dict(asked.delay)},
        max_concurrent_deploy=asked.max_concurrent_deploy,
        workers=asked.workers,
        cleaning=asked.cleaning,
        port=asked.port,
    )


def instructions(ironic: Ironic) -> Iterator[str]:
    """Yield what a user needs to know of an Ironic that has started."""
    states = Counter(ironic.states().values())
    nodes = ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
    yield f"ironic: serving {ironic.url} (nodes: {nodes}; log: {ironic.log})"
    yield "To use it in another terminal, run there:"
    yield "make client"
    yield f'export PATH={shlex.quote(str(ROOT / ".venv-client/bin"))}:"$PATH"'
    yield f"export OS_AUTH_TYPE=none OS_TOKEN= OS_ENDPOINT={ironic.url}"
    yield "openstack baremetal node list"
    yield "openstack baremetal node deploy node-1"


def terminated(_number: int, _frame: FrameType | None) -> None:
    """Do on SIGTERM what Ctrl-C does; once, as make passes it on to whom it has reached."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    """Run an Ironic; return 0 when it is stopped, 1 when it has ended by itself."""
    asked = arguments()
    print_line("ironic: starts")
    signal.signal(signal.SIGTERM, terminated)
    try:
        with Ironic(asked.folder, setup(asked)) as ironic:
            for line in instructions(ironic):
                print_line(line)
            tail = ironic.wait()
    except KeyboardInterrupt:
        print_line("ironic: stopped")
        return 0
    except NoIronic as error:
        tail = str(error)
    print_line(f"ironic: {tail}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
