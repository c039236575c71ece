"""What the gate adds to a request that it passes on: `python -m bench.ironic.gate`.

Requests are sent one after the other, to a double of Ironic and through a gate before it, in turn.
"""

import argparse
import http.client
import json
import re
import statistics
import sys
from time import perf_counter
from urllib.parse import urlsplit

from tests.e2e.support.server import Server
from tests.integrations.ironic.gate.gates import gate

READY = re.compile("^(?P<url>http://.+)")
REQUESTS = 2_000
WARM = 200
TARGETS = {"a node": "/v1/nodes/00000000-0000-4000-8000-000000000001", "1,000 nodes": "/v1/nodes"}
DOUBLE = (sys.executable, "-m", "tests.support.ironic_double", "--nodes", "1000")


def seconds(connection: http.client.HTTPConnection, target: str) -> float:
    """Return how long one request takes."""
    began = perf_counter()
    connection.request("GET", target)
    connection.getresponse().read()
    return perf_counter() - began


def measured(direct: str, proxied: str, target: str, requests: int) -> dict[str, float]:
    """Return the medians in milliseconds."""
    ways = [http.client.HTTPConnection(urlsplit(url).netloc) for url in (direct, proxied)]
    taken: list[list[float]] = [[], []]
    for number in range(WARM + requests):
        for times, way in zip(taken, ways, strict=True):
            took = seconds(way, target)
            if number >= WARM:
                times.append(took * 1_000)
    for way in ways:
        way.close()
    first, second = map(statistics.median, taken)
    return {"direct": round(first, 2), "gate": round(second, 2), "added": round(second - first, 2)}


def main() -> int:
    """Measure and print one line of JSON for each kind of request."""
    parser = argparse.ArgumentParser(prog="python -m bench.ironic.gate", description=__doc__)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    asked = parser.parse_args()
    with Server(DOUBLE, ready=READY) as double, gate(double.url) as made:
        for name, target in TARGETS.items():
            count = asked.requests if name == "a node" else asked.requests // 20
            found = measured(double.url, made.url, target, count)
            print(json.dumps({"request": name, "unit": "ms, median", **found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
