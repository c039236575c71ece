"""A real API server answers the conversation as it is recorded, and so as its double does."""

import asyncio
from pathlib import Path

from tests.kubernetes.cluster import KubernetesCluster
from tests.kubernetes.conversation.real_world import RealWorld
from tests.support.kubernetes_conversation.comparing import problems, recorded
from tests.support.kubernetes_conversation.playing import Place, hold


def test_the_real_server_answers_as_recorded(cluster: KubernetesCluster, tmp_path: Path) -> None:
    """No answer differs, or it is recorded again, and the double has to follow."""
    place = Place(cluster.url, cluster.token, cluster.tls)
    assert problems(recorded(), asyncio.run(hold(place, tmp_path, RealWorld(cluster)))) == []
