"""Two limits that do not hold: counting before starting, and Ironic's own.

Both are seen to let more nodes be busy than they permit. Otherwise the run of the gate would prove
nothing: perhaps Ironic is too slow to exceed any limit.
"""

import threading

from tests.gate import observer, workers
from tests.support.ironic import Ironic

PAUSE_SECONDS = 0.2


def count_then_start(url: str, limit: int) -> workers.Deploy:
    """Return a client that starts a node if fewer than `limit` are busy, as metal3 does."""
    raw = workers.Raw(url)

    def deploy(node: str) -> None:
        while observer.busy_now(url) >= limit:
            raw.pause(PAUSE_SECONDS)
        assert raw.ask(node, "active") == 202
        raw.until(node, "active")

    return deploy


def by_ironic(url: str) -> workers.Deploy:
    """Return a client that relies on Ironic's `max_concurrent_deploy`: 503, then it tries again."""
    raw = workers.Raw(url)

    def deploy(node: str) -> None:
        while (status := raw.ask(node, "active")) in (409, 503):
            raw.pause(PAUSE_SECONDS)
        assert status == 202, status
        raw.until(node, "active")

    return deploy


def most_busy(ironic: Ironic, nodes: list[str], deploy: workers.Deploy, together: int) -> int:
    """Deploy nodes by workers that start at the same moment; return how many were busy at once."""
    begin = ironic.log.stat().st_size
    barrier = threading.Barrier(together)
    started = threading.local()

    def at_once(node: str) -> None:
        if not hasattr(started, "yes"):
            started.yes = True
            barrier.wait()
        deploy(node)

    with observer.Observer(ironic.url) as watch:
        failures = workers.run(nodes, together, at_once)
    assert not failures, failures
    return max(watch.most, observer.most_by_log(ironic.log, begin))


def undeploy(ironic: Ironic, nodes: list[str]) -> None:
    """Make nodes available again."""
    raw = workers.Raw(ironic.url)
    for node in nodes:
        while raw.ask(node, "deleted") in (409, 503):
            raw.pause(PAUSE_SECONDS)
    for node in nodes:
        raw.until(node, "available")
