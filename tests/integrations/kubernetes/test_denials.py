"""Which refusals come from the state of an API server, and which from missing rights."""

import pytest

from moorage.integrations.kubernetes import denials
from moorage.integrations.kubernetes.denials import FORGET_SECONDS, SETTLE_SECONDS, Denials

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
    """Also one whose role seems to be gone: a binding may outlive it. Much later it is new."""
    denied = Denials()
    assert denied.may_pass(said)
    clock[0] += SETTLE_SECONDS - 0.1
    assert denied.may_pass(said)
    clock[0] += 0.1
    assert not denied.may_pass(said)
    clock[0] += FORGET_SECONDS - 0.1
    assert not denied.may_pass(said)
    clock[0] += FORGET_SECONDS
    assert denied.may_pass(said)


def test_rights_are_told_apart(clock: list[float]) -> None:
    """A right is one verb on one resource in one namespace, whatever the object is called."""
    denied = Denials()
    assert denied.may_pass(PATCH)
    clock[0] += SETTLE_SECONDS
    assert denied.may_pass(LIST)
    assert denied.may_pass(PATCH.replace("metal3", "other"))
    assert not denied.may_pass(PATCH.replace('"a"', '"b"'))


@pytest.mark.parametrize("said", ADMISSION)
def test_what_admission_refuses_does_not_pass(said: str, clock: list[float]) -> None:
    """It concerns the object, and stays."""
    assert not Denials().may_pass(said)
