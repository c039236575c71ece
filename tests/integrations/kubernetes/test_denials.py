"""Which refusals come from the state of an API server, and which from missing rights."""

import pytest

from moorage.integrations.kubernetes import denials
from moorage.integrations.kubernetes.denials import (
    FORGET_SECONDS,
    SETTLE_SECONDS,
    Denials,
    asked_of,
)

USER = 'User "system:serviceaccount:moorage:moorage"'
UNREAD = 'RBAC: clusterrole.rbac.authorization.k8s.io "moorage-metal3" not found'
PATCH = (
    f'baremetalhosts.metal3.io "a" is forbidden: {USER} cannot patch resource "baremetalhosts" in'
    f' API group "metal3.io" in the namespace "metal3"'
)
LIST = (
    f'clusters.cluster.x-k8s.io is forbidden: {USER} cannot list resource "clusters" in API group'
    ' "cluster.x-k8s.io" at the cluster scope'
)
PATHS = f'forbidden: {USER} cannot get path "/version"'
ADMISSION = (
    'admission webhook "hosts.example" denied the request: no changes today',
    'baremetalhosts.metal3.io "a" is forbidden: exceeded quota: hosts, requested: 1, limited: 1',
    'events "a.1" is forbidden: unable to create new content in namespace metal3 because it is'
    " being terminated",
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let time stand still; the test adds to its one number."""
    seconds = [1_000.0]
    monkeypatch.setattr(denials, "monotonic", lambda: seconds[0])
    return seconds


@pytest.mark.parametrize("said", [PATCH, f"{PATCH}: {UNREAD}", LIST, f"{LIST}: {UNREAD}", PATHS])
def test_a_right_is_missing_once_it_is_denied_for_some_time(said: str, clock: list[float]) -> None:
    """Also one whose role seems to be gone: a binding may outlive it. It stays missing, however
    seldom it is needed, until it is granted; then a denial is the first one again.
    """
    denied = Denials()
    assert denied.may_pass(said, "it")
    clock[0] += SETTLE_SECONDS - 0.1
    assert denied.may_pass(said, "it")
    clock[0] += 0.1
    assert not denied.may_pass(said, "it")
    for _ in range(3):
        clock[0] += 100 * FORGET_SECONDS
        denied.permitted("another")
        assert not denied.may_pass(said, "it")
    denied.permitted("it")
    assert denied.may_pass(said, "it")


def test_a_denial_is_forgotten(clock: list[float]) -> None:
    """One that was seen for a moment says nothing of the next one, after a long time."""
    denied = Denials()
    assert denied.may_pass(PATCH, "it")
    clock[0] += FORGET_SECONDS
    assert denied.may_pass(PATCH, "it")


def test_rights_are_told_apart(clock: list[float]) -> None:
    """A right is one verb on one resource in one namespace, whatever the object is called."""
    denied = Denials()
    assert denied.may_pass(PATCH, "")
    clock[0] += SETTLE_SECONDS
    assert denied.may_pass(LIST, "")
    assert denied.may_pass(PATCH.replace("metal3", "other"), "")
    assert not denied.may_pass(PATCH.replace('"a"', '"b"'), "")


HOSTS = "/apis/metal3.io/v1alpha1/namespaces/a/baremetalhosts"
CLUSTERS = "/apis/cluster.x-k8s.io"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (f"{HOSTS}/x", f"{HOSTS}/y?fieldManager=m", True),
        (f"{HOSTS}?limit=1", HOSTS, True),
        (f"{CLUSTERS}/v1beta2/clusters", f"{CLUSTERS}/v1beta1/clusters", True),
        (HOSTS, f"{HOSTS}/x", False),
        (f"{HOSTS}/x", f"{HOSTS}/x/status", False),
        (f"{HOSTS}/x", f"{HOSTS.replace('/a/', '/b/')}/x", False),
        ("/api/v1/namespaces/a", "/api/v1/namespaces/b", False),
        ("/api/v1/namespaces", "/api/v1/namespaces/b", False),
        (HOSTS, HOSTS.replace("/namespaces/a", ""), False),
        ("/version", "/healthz", False),
    ],
)
def test_what_a_role_permits_together(one: str, other: str, *, same: bool) -> None:
    """It is one verb on one resource in one namespace, in all versions of its group."""
    assert (asked_of("GET", one) == asked_of("GET", other)) is same
    assert asked_of("GET", one) != asked_of("PATCH", one)


@pytest.mark.parametrize("said", ADMISSION)
def test_what_admission_refuses_does_not_pass(said: str, clock: list[float]) -> None:
    """It concerns the object, and stays."""
    assert not Denials().may_pass(said, "")
