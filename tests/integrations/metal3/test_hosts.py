"""What BareMetalHosts do and start, row by row as in BMO's state machine."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.integrations.metal3 import hosts
from moorage.integrations.metal3.hosts import DETACHED, INSPECT, OWN, PAUSED, Verb

IMAGE = {"image": {"url": "http://images/a.qcow2"}}
OTHER = {"image": {"url": "http://images/b.qcow2"}}
LIVE = {"customDeploy": {"method": "install_coreos"}}
BMC = {"bmc": {"address": "redfish://10.0.0.1", "credentialsName": "secret"}}
STATES = [
    "",
    "unmanaged",
    "registering",
    "match profile",
    "inspecting",
    "preparing",
    "ready",
    "available",
    "provisioning",
    "provisioned",
    "externally provisioned",
    "deprovisioning",
    "powering off before delete",
    "deleting",
]
"""All of `ProvisioningState`."""


def host(
    state: str = "available",
    spec: Any = None,
    had: Any = None,
    annotations: Any = None,
    operational: str = "OK",
    **metadata: Any,
) -> dict[str, Any]:
    """Return a BareMetalHost."""
    given = {"uid": "u", "name": "n", "namespace": "ns", "annotations": annotations or {}}
    provisioning = {"state": state, **(had or {})}
    return {
        "metadata": {**given, **metadata},
        "spec": {"online": True, **BMC, **(spec or {})},
        "status": {"operationalStatus": operational, "provisioning": provisioning},
    }


DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}

STARTS: list[tuple[dict[str, Any], Verb | None]] = [
    (host(""), Verb.INSPECT),
    (host("registering"), Verb.INSPECT),
    (host("unmanaged"), Verb.INSPECT),
    (host("", {"bmc": {}}), None),
    (host("", {"inspectionMode": "disabled"}), Verb.PREPARE),
    (host("", annotations={INSPECT: "disabled"}), Verb.PREPARE),
    (host("", {"externallyProvisioned": True}), None),
    (host("registering", **DELETED), None),
    (host(), None),
    (host("ready"), None),
    (host(annotations={INSPECT: ""}), Verb.INSPECT),
    (host(spec=IMAGE, annotations={INSPECT: ""}), Verb.INSPECT),
    (host(annotations={INSPECT: "disabled"}), None),
    (host(spec=IMAGE), Verb.PROVISION),
    (host("ready", spec=IMAGE), Verb.PROVISION),
    (host(spec=LIVE), Verb.PROVISION),
    (host(spec={**IMAGE, **LIVE}), Verb.PROVISION),
    (host(spec={**IMAGE, "online": False}), None),
    (host(spec={"image": {"url": ""}}), None),
    (host(spec={"customDeploy": {"method": ""}}), None),
    (host(spec=IMAGE, **DELETED), None),
    (host(spec=IMAGE, annotations={DETACHED: ""}), None),
    (host(spec={**IMAGE, "externallyProvisioned": True}), None),
    (host("provisioned", IMAGE, IMAGE), None),
    (host("provisioned", OTHER, IMAGE), Verb.DEPROVISION),
    (host("provisioned", None, IMAGE), Verb.DEPROVISION),
    (host("provisioned", LIVE, LIVE), None),
    (host("provisioned", {"customDeploy": {"method": "other"}}, LIVE), Verb.DEPROVISION),
    (host("provisioned", {**LIVE, **OTHER}, {**LIVE, **IMAGE}), Verb.DEPROVISION),
    (host("provisioned", IMAGE, {**IMAGE, **LIVE}), Verb.DEPROVISION),
    (host("provisioned", IMAGE, IMAGE, **DELETED), Verb.DEPROVISION),
    (host("externally provisioned", {"externallyProvisioned": True}), None),
]


@pytest.mark.parametrize(("found", "verb"), STARTS)
def test_starts(found: dict[str, Any], verb: Verb | None) -> None:
    """An idle host starts what BMO's handler of its state goes on to, and occupies a unit."""
    assert hosts.start_of(found) == verb
    assert hosts.work_of(found) is None
    assert hosts.occupies(found) == (verb is not None)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("pause", [None, OWN, "metal3.io/capm3"])
def test_work(state: str, pause: str | None) -> None:
    """A host that works occupies a unit, also if it is paused: what Ironic does goes on."""
    annotations = {} if pause is None else {PAUSED: pause}
    found = host(state, IMAGE, IMAGE, annotations)
    works = state in ("inspecting", "preparing", "provisioning", "deprovisioning")
    assert (hosts.work_of(found) is not None) == works
    if works:
        assert hosts.occupies(found)
        assert hosts.start_of(found) is None
    elif pause is not None:
        assert not hosts.occupies(found)
    assert hosts.pause_of(found) == pause


def test_a_host_that_is_removed_keeps_its_unit() -> None:
    """BMO goes on to delete a host that is inspected, and waits for its node only then: a unit
    stays, but no host gets one because it is deleted.
    """
    for state in ("powering off before delete", "deleting"):
        assert hosts.may_work(host(state, **DELETED))
        assert not hosts.occupies(host(state, **DELETED))
    assert not hosts.may_work(host())


def test_detached() -> None:
    """Ironic does not have a detached host, until the annotation is removed: then the work goes on.
    A host that is to be detached is registered and inspected first.
    """
    mark = {DETACHED: ""}
    gone = host("provisioning", annotations=mark, operational="detached")
    assert hosts.work_of(gone) is None
    assert hosts.work_of(host("provisioning", operational="detached")) is Verb.PROVISION
    assert hosts.work_of(host("provisioning", annotations=mark)) is Verb.PROVISION
    assert hosts.start_of(host("registering", annotations=mark)) is Verb.INSPECT
    assert hosts.start_of(host("registering", annotations=mark, operational="detached")) is None


def test_provisioned() -> None:
    """A host is provisioned once it has the image that it is to have."""
    assert hosts.is_provisioned(host("provisioned", IMAGE, IMAGE))
    assert hosts.is_provisioned(host("externally provisioned", {"externallyProvisioned": True}))
    assert not hosts.is_provisioned(host("provisioned", OTHER, IMAGE))
    assert not hosts.is_provisioned(host("provisioning", IMAGE, IMAGE))


def test_names() -> None:
    """Leases are named by the UID, people see the namespace."""
    assert hosts.uid_of(host()) == "u"
    assert hosts.name_of(host()) == "ns/n"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["image", "url", "provisioning", "state", "bmc", "customDeploy", "method"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(spec=anything, status=anything, annotations=anything, state=st.sampled_from(STATES))
def test_any_content(spec: Any, status: Any, annotations: Any, state: str) -> None:
    """Whatever a host contains, it can be judged; a pause always holds back what is idle."""
    if isinstance(status, dict) and isinstance(status.get("provisioning"), dict):
        status["provisioning"]["state"] = state
    found = {"metadata": {"uid": "u", "name": "n", "annotations": annotations}, "spec": spec}
    found["status"] = status
    assert hosts.occupies(found) in (True, False)
    paused = {"uid": "u", "name": "n", "annotations": {PAUSED: OWN}}
    held = {**found, "metadata": paused}
    assert hosts.occupies(held) == (hosts.work_of(held) is not None)
