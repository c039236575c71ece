"""Files by which clients find a cluster."""

from typing import Any


def kubeconfig(server: str, user: dict[str, Any], **cluster: str) -> dict[str, Any]:
    """Return a configuration of one cluster and one user."""
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
        "clusters": [{"name": "one", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "me", "user": user}],
    }
