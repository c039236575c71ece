"""`python -m tests.support.ironic_double`: a double of Ironic until it is terminated.

The first line of its output is its address. Another process controls it below `/_double/`:
POST advance, fault, outage, restart, lock, fail, seconds, touch with JSON, and GET history.
"""

import argparse
import asyncio
import signal

from tests.support.ironic_double.server import IronicDouble
from tests.support.suites import print_line


async def serve(asked: argparse.Namespace) -> None:
    """Run the double until SIGINT or SIGTERM."""
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    double = IronicDouble(
        asked.nodes,
        state=asked.state,
        scale=asked.scale,
        agent=asked.agent,
        limit=asked.limit,
        token=asked.token,
        port=asked.port,
    )
    async with double:
        print_line(double.url)
        await stopped.wait()


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--nodes", type=int, default=50, help="node-1 to node-N (%(default)s)")
    add("--state", default="available", help="in which they start (%(default)s)")
    add("--scale", type=float, help="virtual seconds per second (default: moved by hand)")
    add("--agent", action="store_true", help="work waits for the agents of the nodes")
    add("--limit", type=int, default=1_000, help="Ironic's own, of deployments (%(default)s)")
    add("--token", help="requests need it (default: none)")
    add("--port", type=int, default=0, help="0: a free one (%(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(serve(arguments()))
