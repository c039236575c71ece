"""The status of a BareMetalHost, also of one that has just arrived from another cluster.

`clusterctl move` and backups do not carry the status: Cluster API's provider writes it into an
annotation before. BMO takes it from there before it does anything else, as long as it has not
stored a status itself, which has a time. Source: baremetal-operator 02aa505,
`baremetalhost_controller.go`, `reconcileHostData` and `hostHasStatus`.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

BareMetalHost = Mapping[str, Any]
"""A BareMetalHost of metal3.io/v1alpha1, as the Kubernetes API returns it."""

STATUS = "baremetalhost.metal3.io/status"
"""The annotation that has the status of a host that was moved, as JSON."""

KEPT_MAX = 256
"""Annotations that are decoded once: a host keeps its own only until BMO has looked at it."""


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Return a value of an object if it is an object itself; otherwise an empty one."""
    return value if isinstance(value, Mapping) else {}


def status_of(host: BareMetalHost) -> Mapping[str, Any]:
    """Return the status of a host: the stored one, or that of its annotation; empty: none."""
    stored = host.get("status")
    if isinstance(stored, Mapping) and stored.get("lastUpdated"):
        return stored
    said = mapping_of(host["metadata"].get("annotations")).get(STATUS)
    moved = _decoded(said) if isinstance(said, str) and said else None
    if moved is not None:
        return moved
    return mapping_of(stored)


@lru_cache(maxsize=KEPT_MAX)
def _decoded(text: str) -> Mapping[str, Any] | None:
    """Return the status that an annotation has; None: BMO cannot read it either."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
