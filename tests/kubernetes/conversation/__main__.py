"""`python -m tests.kubernetes.conversation`: record the answers of a real API server."""

import asyncio
import tempfile
from pathlib import Path

from tests.kubernetes.cluster import KubernetesCluster
from tests.kubernetes.conversation.real_world import RealWorld
from tests.support.kubernetes_conversation.comparing import record
from tests.support.kubernetes_conversation.playing import Place, hold


def main() -> None:
    """Start one, hold the conversation, store the answers."""
    with tempfile.TemporaryDirectory() as folder, KubernetesCluster(Path(folder)) as cluster:
        cluster.serve_hosts()
        place = Place(cluster.url, cluster.token, cluster.tls)
        record(asyncio.run(hold(place, Path(folder), RealWorld(cluster))))


if __name__ == "__main__":
    main()
