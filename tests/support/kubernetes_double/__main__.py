"""`python -m tests.support.kubernetes_double`: a double of an API server until it is terminated.

The first line of its output is its address. Another process controls it below `/_double/`:
POST fault, forget, drop-watches with JSON.
"""

import argparse
import asyncio
import signal

from tests.support.kubernetes_double.access import ADMIN
from tests.support.kubernetes_double.server import KubernetesDouble
from tests.support.suites import print_line


async def serve(asked: argparse.Namespace) -> None:
    """Run the double until SIGINT or SIGTERM."""
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    accounts = {asked.token: ADMIN} if asked.token else {}
    async with KubernetesDouble(accounts=accounts, port=asked.port) as double:
        print_line(double.url)
        await stopped.wait()


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--token", help="requests need it (default: none)")
    parser.add_argument("--port", type=int, default=0, help="0: a free one (%(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(serve(arguments()))
