"""Compacts the etcd of a real API server, and restarts the server, during the conversation."""

import asyncio
from dataclasses import dataclass

from tests.kubernetes.cluster import KubernetesCluster


@dataclass
class RealWorld:
    """A real API server."""

    cluster: KubernetesCluster

    async def compact(self) -> None:
        """Let its etcd forget all versions but the present one."""
        await asyncio.to_thread(self.cluster.compact)

    async def restart(self) -> None:
        """Kill it, and start it again."""
        await asyncio.to_thread(self.cluster.restart_server)
