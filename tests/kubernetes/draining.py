"""What lets a node be drained although it runs one of several processes."""

from collections.abc import Sequence
from typing import Any

Object = dict[str, Any]


def undrainable(objects: Sequence[Object]) -> list[str]:
    """Return what each workload with several pods lacks for its service to go on meanwhile."""
    return [
        f"{one['kind']}/{one['metadata']['name']} {lack}"
        for one in objects
        if one.get("spec", {}).get("replicas", 1) > 1
        for lack in _lacks(one["spec"]["template"], objects)
    ]


def _lacks(pod: Object, objects: Sequence[Object]) -> list[str]:
    labels, spec, found = pod["metadata"]["labels"], pod["spec"], []
    budgets = [
        one["spec"]
        for one in objects
        if one["kind"] == "PodDisruptionBudget"
        and one["spec"]["selector"]["matchLabels"].items() <= labels.items()
    ]
    wanted = [(1, "AlwaysAllow")]
    if [(one["maxUnavailable"], one["unhealthyPodEvictionPolicy"]) for one in budgets] != wanted:
        found.append("can lose all pods at once, or keeps a node from being drained")
    spread = [
        one["topologyKey"]
        for one in spec.get("topologySpreadConstraints", [])
        if one["labelSelector"]["matchLabels"].items() <= labels.items()
    ]
    if "kubernetes.io/hostname" not in spread:
        found.append("may have all pods on one node")
    hook = spec["containers"][0].get("lifecycle", {}).get("preStop", {})
    if hook.get("sleep", {}).get("seconds", 0) < 5:
        found.append("ends while nodes still send it new connections")
    return found
