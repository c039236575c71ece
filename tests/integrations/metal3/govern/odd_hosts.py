"""Hosts with odd values anywhere: what people, other programs or a wrong server can write."""

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from moorage.integrations.metal3.hosts import DETACHED, INSPECT, OWN, PAUSED, WAITING

Host = dict[str, Any]

WHOLE: Host = {
    "apiVersion": "metal3.io/v1alpha1",
    "kind": "BareMetalHost",
    "metadata": {
        "name": "odd",
        "namespace": "metal3",
        "uid": "uid-odd",
        "resourceVersion": "1",
        "labels": {"rack": "r1"},
        "annotations": {PAUSED: OWN, WAITING: 'code: "limit"\nplace: 1'},
    },
    "spec": {
        "online": True,
        "bmc": {"address": "redfish://192.0.2.1", "credentialsName": "secret"},
        "image": {"url": "http://images/a", "format": "qcow2"},
        "customDeploy": {"method": "install"},
        "inspectionMode": "agent",
        "bootMode": "UEFI",
        "architecture": "x86_64",
        "hardwareProfile": "unknown",
        "consumerRef": {"name": "machine"},
        "externallyProvisioned": False,
    },
    "status": {
        "operationalStatus": "error",
        "errorType": "provisioning error",
        "errorMessage": "it failed",
        "errorCount": 5,
        "lastUpdated": "2026-01-01T00:00:00Z",
        "provisioningFailCount": 5,
        "lastAttemptedImage": {"url": "http://images/a", "format": "qcow2"},
        "provisioning": {"state": "available", "image": {}, "customDeploy": {}},
        "hardware": {
            "systemVendor": {"manufacturer": "v", "productName": "p"},
            "cpu": {"arch": "a"},
        },
    },
}
"""A host with every field that is read."""

FIXED = {
    *(("apiVersion",), ("kind",), ("metadata",)),
    *(("metadata", one) for one in ("name", "namespace", "uid", "resourceVersion")),
}
"""What identifies an object: without it a list is refused as a whole."""

DEEP: Any = "deep"
for _ in range(200):
    DEEP = [DEEP]

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**30, 1e308, "", "x", [], ["x"], {}, {"x": {"y": 1}}, DEEP),
    *("registration error", "provisioning error", "registering", "inspecting", "deprovisioning"),
    *("\ud800", "\x00\x1b[2J\n- forged: line\r\u2028\u202e", "../../../etc", "é" * 300),
    *("9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "place: " + "[" * 9_000),
    *("place: " + "1" * 9_000, "reason: NaN\nplace: 1e999", "a" * 300_000),
)
"""Values in place of those that belong somewhere."""


def places(of: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each value of a host that may be odd."""
    if path and path not in FIXED:
        yield path
    if isinstance(of, dict):
        for name, value in of.items():
            yield from places(value, (*path, name))


PLACES = (*places(WHOLE), *(("metadata", "annotations", one) for one in (DETACHED, INSPECT)))


def with_value(host: Host, path: tuple[str, ...], value: Any) -> Host:
    """Return a host with another value at a path, unless something on the way is no object."""
    made = copy.deepcopy(host)
    at = made
    for name in path[:-1]:
        at = at.get(name, {})
        if not isinstance(at, dict):
            return made
    at[path[-1]] = value
    return made


@st.composite
def odd_hosts(draw: st.DrawFn) -> Host:
    """Draw hosts with up to four odd values."""
    made = WHOLE
    for path, value in draw(
        st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(ODD)), max_size=4)
    ):
        made = with_value(made, path, value)
    return made
