"""`make gated-ironic`: a real Ironic with fake nodes, Moorage, and the gate between it and clients.

Everything ends with Ctrl-C.
"""

import argparse
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.baremetal.serve import terminated
from tests.e2e.support.server import NotStarted, Server
from tests.gate.stack import POOL, Stack
from tests.support.ironic import ROOT, Ironic, NoIronic, Setup
from tests.support.suites import print_line

WAVE = 20
"""Nodes that the printed example deploys."""


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="make gated-ironic ARGS=",
        description=__doc__,
        usage='make gated-ironic ARGS="[OPTIONS]"',
    )
    add = parser.add_argument
    add("--limit", type=int, default=5, help=f"units of the pool {POOL} (%(default)s)")
    add("--nodes", type=int, default=50, help="node-1 to node-N (%(default)s)")
    add("--delay", default="3", help="seconds, twice for each deployment (%(default)s)")
    add("--port", type=int, default=0, help="of the gate; 0: a free one (%(default)s)")
    add("--moorage", default="moorage", help=argparse.SUPPRESS)
    return parser.parse_args()


def instructions(
    gate: Server, stack: Stack, ironic: Ironic, asked: argparse.Namespace
) -> Iterator[str]:
    """Yield what a user needs to know."""
    programs = f"{ROOT / '.venv/bin'}:{ROOT / '.venv-client/bin'}"
    yield f"gated-ironic: serving {gate.url}, before {ironic.url} ({asked.nodes} nodes)"
    yield f"gated-ironic: at most {asked.limit} nodes are busy at once: pool {POOL} of {stack.url}"
    yield "Paste these lines into two other terminals:"
    yield f'export PATH={shlex.quote(programs)}:"$PATH"'
    yield f"export OS_AUTH_TYPE=none OS_TOKEN= OS_ENDPOINT={gate.url}"
    yield f"export MOORAGE_URL={stack.url} MOORAGE_TOKEN={stack.admin}"
    yield "Then watch in the first one, until you press q:"
    yield "moorage top"
    yield "Deploy in the second one:"
    wave = min(WAVE, asked.nodes)
    yield f"seq {wave} | xargs -P 10 -I % openstack baremetal node deploy node-%"
    yield "Press Ctrl-C here to end everything."


def serve(asked: argparse.Namespace, folder: Path) -> str:
    """Run everything until Ironic ends; return why."""
    setup = Setup(nodes=asked.nodes, delays={"deploy": asked.delay})
    with (
        Ironic(folder / "ironic", setup) as ironic,
        Stack(shlex.split(asked.moorage), folder, asked.limit) as stack,
        stack.gate(ironic.url, listen=f"127.0.0.1:{asked.port}") as gate,
    ):
        for line in instructions(gate, stack, ironic, asked):
            print_line(line)
        return ironic.wait()


def main() -> int:
    """Return 0 when it is stopped, 1 when a part of it has ended by itself."""
    asked = arguments()
    print_line(f"gated-ironic: starts Ironic with {asked.nodes} fake nodes, Moorage and the gate")
    signal.signal(signal.SIGTERM, terminated)
    try:
        with TemporaryDirectory(prefix="moorage-gated-") as folder:
            reason = serve(asked, Path(folder))
    except KeyboardInterrupt:
        print_line("gated-ironic: stopped")
        return 0
    except (NoIronic, NotStarted) as error:
        reason = str(error)
    print_line(f"gated-ironic: {reason}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
