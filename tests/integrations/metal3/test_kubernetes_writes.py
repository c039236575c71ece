"""The double of Kubernetes keeps the rules of writes: versions, patches, apply, finalizers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.kubernetes_client import (
    CORE,
    HOSTS,
    Answered,
    Kubernetes,
    host,
    hosts_in,
    least_status,
)
from tests.support.kubernetes_double.access import ADMIN, Account, service_account
from tests.support.kubernetes_double.server import KubernetesDouble

ALL = hosts_in("metal3")
ONE = f"{ALL}/a"
PAUSED = "baremetalhost.metal3.io/paused"
STATUS = least_status(poweredOn=True)
COUNTS = {"errorCount": 0, "provisioningFailCount": 0}
"""What the schema adds to a status."""
Play = Callable[[KubernetesDouble, Kubernetes], Awaitable[None]]


def play(scene: Play, **options: Any) -> None:
    """Run a scene with a double and a client."""

    async def run() -> None:
        token = next(iter(options.get("accounts", {})), None)
        async with (
            KubernetesDouble(**options) as double,
            Kubernetes(double.url, token=token) as api,
        ):
            await asyncio.wait_for(scene(double, api), 20)

    asyncio.run(run())


async def refused(request: Awaitable[Any]) -> tuple[int, str, str]:
    """Return status code, reason and message of a refusal."""
    with pytest.raises(Answered) as caught:
        await request
    body = caught.value.body
    assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", caught.value.code)
    return caught.value.code, body["reason"], body["message"]


def test_versions_and_generations() -> None:
    """Each write raises the version, only the specification raises the generation, and a write that
    changes nothing raises neither.
    """

    async def scene(_: KubernetesDouble, api: Kubernetes) -> None:
        first = await api.create(ALL, host("a"))
        assert first["metadata"]["generation"] == 1
        second = await api.merge(ONE, {"spec": {"online": False}})
        third = await api.merge(ONE, {"metadata": {"annotations": {PAUSED: "moorage"}}})
        fourth = await api.merge(f"{ONE}/status", {"status": STATUS})
        versions = [
            int(one["metadata"]["resourceVersion"]) for one in (first, second, third, fourth)
        ]
        assert versions == sorted({*versions})
        found = [one["metadata"]["generation"] for one in (second, third, fourth)]
        assert found == [2, 2, 2]
        again = await api.merge(ONE, {"spec": {"online": False}})
        assert again["metadata"] == fourth["metadata"]
        assert {one["metadata"]["uid"] for one in (first, second, third, fourth)} == {
            first["metadata"]["uid"]
        }

    play(scene)


def test_conflicts() -> None:
    """An update of an old version, one without a version, and a patch that names an old version are
    refused; a create of what exists and a read of what does not, too.
    """

    async def scene(_: KubernetesDouble, api: Kubernetes) -> None:
        first = await api.create(ALL, host("a"))
        await api.merge(ONE, {"spec": {"online": False}})
        code, reason, message = await refused(api.update(ONE, first))
        assert (code, reason) == (409, "Conflict")
        assert message == (
            'Operation cannot be fulfilled on baremetalhosts.metal3.io "a": the object has been '
            "modified; please apply your changes to the latest version and try again"
        )
        old = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}}
        assert (await refused(api.merge(ONE, {**old, "spec": {"online": True}})))[0] == 409
        assert (await refused(api.update(ONE, host("a"))))[:2] == (422, "Invalid")
        assert (await refused(api.create(ALL, host("a"))))[:2] == (409, "AlreadyExists")
        assert await refused(api.get(f"{ALL}/b")) == (
            *(404, "NotFound"),
            'baremetalhosts.metal3.io "b" not found',
        )
        assert (await refused(api.create(hosts_in("nowhere"), host("a"))))[0] == 404

    play(scene)


def test_only_one_of_two_updates_wins() -> None:
    """Of two updates of one version that arrive together, exactly one is stored."""

    async def scene(_: KubernetesDouble, api: Kubernetes) -> None:
        first = await api.create(ALL, host("a"))
        both = [
            api.update(ONE, {**first, "spec": {**first["spec"], "description": text}})
            for text in ("one", "other")
        ]
        found = await asyncio.gather(*both, return_exceptions=True)
        assert sorted(isinstance(one, Answered) for one in found) == [False, True]

    play(scene)


def test_status_is_apart() -> None:
    """A create and an update ignore the status, an update of the status ignores all else."""

    async def scene(_: KubernetesDouble, api: Kubernetes) -> None:
        first = await api.create(ALL, {**host("a"), "status": STATUS})
        assert "status" not in first
        changed = {**first, "spec": {"online": False}, "status": STATUS}
        found = await api.update(f"{ONE}/status", changed)
        assert (found["spec"], found["status"]) == (first["spec"], {**STATUS, **COUNTS})
        found = await api.update(ONE, {**found, "status": {}, "spec": {"online": False}})
        spec = {"online": False, "automatedCleaningMode": "metadata"}
        assert (found["spec"], found["status"]) == (spec, {**STATUS, **COUNTS})

    play(scene)


def test_json_patches() -> None:
    """A JSON patch is carried out as a whole, or, if its test fails, not at all."""

    async def scene(_: KubernetesDouble, api: Kubernetes) -> None:
        await api.create(ALL, host("a", annotations={PAUSED: "moorage"}))
        way = f"/metadata/annotations/{PAUSED.replace('/', '~1')}"
        steps = [
            {"op": "add", "path": "/spec/description", "value": "mine"},
            {"op": "test", "path": way, "value": "metal3.io/capm3"},
            {"op": "remove", "path": way},
        ]
        assert (await refused(api.json_patch(ONE, steps)))[:2] == (422, "Invalid")
        assert "description" not in (await api.get(ONE))["spec"]
        steps[1]["value"] = "moorage"
        found = await api.json_patch(ONE, steps)
        assert found["spec"]["description"] == "mine"
        assert not found["metadata"].get("annotations")

    play(scene)


def test_apply() -> None:
    """Server-side apply: each manager has its fields; another's is a conflict unless it is forced;
    what a manager no longer applies is removed.
    """

    async def scene(_: KubernetesDouble, api: Kubernetes) -> None:
        def wanted(**annotations: str) -> dict[str, Any]:
            short = {"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost"}
            return {**short, "metadata": {"name": "a", "annotations": annotations}}

        await api.create(ALL, host("a", annotations={"theirs": "1"}), fieldManager="user")
        found = await api.apply(ONE, wanted(mine="1", paused="moorage"), "moorage")
        assert found["metadata"]["annotations"] == {"theirs": "1", "mine": "1", "paused": "moorage"}
        again = await api.apply(ONE, wanted(mine="1", paused="moorage"), "moorage")
        assert again["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
        found = await api.apply(ONE, wanted(mine="1"), "moorage")
        assert found["metadata"]["annotations"] == {"theirs": "1", "mine": "1"}
        code, _reason, message = await refused(api.apply(ONE, wanted(theirs="2"), "moorage"))
        assert (code, message) == (
            409,
            'Apply failed with 1 conflict: conflict with "user" using metal3.io/v1alpha1: '
            ".metadata.annotations.theirs",
        )
        found = await api.apply(ONE, wanted(theirs="2"), "moorage", force="true")
        assert found["metadata"]["annotations"] == {"theirs": "2"}
        managers = {one["manager"]: one for one in found["metadata"]["managedFields"]}
        assert managers["moorage"]["fieldsV1"] == {
            "f:metadata": {"f:annotations": {"f:theirs": {}}}
        }
        left = managers["user"]["fieldsV1"]["f:metadata"]
        assert left == {"f:annotations": {}}, "who has added the map has it, not its members"
        assert (await refused(api.apply(ONE, wanted(theirs="3"), "other")))[0] == 409

    play(scene)


def test_schemas() -> None:
    """Unknown fields are dropped, defaults are added, and what is wrong is refused; what was stored
    already is not looked at again.
    """

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        spec = {"online": True, "unknown": 1}
        found = await api.create(ALL, {**host("a"), "spec": spec})
        assert found["spec"] == {"online": True, "automatedCleaningMode": "metadata"}
        code, reason, message = await refused(api.merge(ONE, {"spec": {"bootMode": "BIOS"}}))
        assert (code, reason) == (422, "Invalid")
        assert message == (
            'BareMetalHost.metal3.io "a" is invalid: spec.bootMode: Unsupported value: "BIOS": '
            'supported values: "UEFI", "UEFISecureBoot", "legacy"'
        )
        wrong = {"status": {"provisioning": {"state": "available"}, "poweredOn": "no"}}
        code, _, message = await refused(api.merge(f"{ONE}/status", wrong))
        assert code == 422
        for field in ("errorMessage", "operationalStatus", "provisioning.ID"):
            assert f"status.{field}: Required value" in message
        assert "poweredOn in body must be of type boolean" in message
        strict = {"fieldValidation": "Strict"}
        assert (await refused(api.create(ALL, {**host("b"), "spec": spec}, **strict)))[0] == 400
        key = ("metal3.io", "baremetalhosts", "metal3", "a")
        odd = {**found, "spec": {**found["spec"], "bootMode": "odd"}}
        double.storage.write(key, odd)
        await api.merge(ONE, {"spec": {"online": False}})
        assert (await refused(api.merge(ONE, {"spec": {"bootMode": "other"}})))[0] == 422

    play(scene)


def test_finalizers() -> None:
    """A deleted object with finalizers stays, marked, until the last of them is removed."""

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        await api.create(ALL, host("a", finalizers=["baremetalhost.metal3.io"]))
        wrong = {"preconditions": {"uid": "another"}}
        assert (await refused(api.delete(ONE, wrong)))[:2] == (409, "Conflict")
        found = await api.delete(ONE)
        assert found["metadata"]["deletionTimestamp"]
        assert found["metadata"]["generation"] == 2
        await api.merge(ONE, {"metadata": {"finalizers": None}})
        assert (await refused(api.get(ONE)))[0] == 404
        assert double.storage.history[-1].type == "DELETED"
        await api.create(ALL, host("a"))
        assert (await api.delete(ONE))["status"] == "Success"

    play(scene)


ROLES: list[dict[str, Any]] = [
    {
        "kind": "ClusterRole",
        "metadata": {"name": "reads"},
        "rules": [{"apiGroups": ["metal3.io"], "resources": ["baremetalhosts"], "verbs": ["list"]}],
    },
    {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reads"},
        "roleRef": {"kind": "ClusterRole", "name": "reads"},
        "subjects": [{"kind": "ServiceAccount", "name": "governor", "namespace": "moorage"}],
    },
    {
        "kind": "Role",
        "metadata": {"name": "leads", "namespace": "moorage"},
        "rules": [
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "resourceNames": ["leader"],
                "verbs": ["get"],
            }
        ],
    },
    {
        "kind": "RoleBinding",
        "metadata": {"name": "leads", "namespace": "moorage"},
        "roleRef": {"kind": "Role", "name": "leads"},
        "subjects": [{"kind": "ServiceAccount", "name": "governor", "namespace": "moorage"}],
    },
]


def test_roles() -> None:
    """A service account may do what its roles say, in their namespace, and nothing else."""

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        assert (await api.get(f"{HOSTS}/baremetalhosts"))["items"] == []
        code, reason, message = await refused(api.get(ONE))
        assert (code, reason) == (403, "Forbidden")
        assert message == (
            'baremetalhosts.metal3.io "a" is forbidden: User '
            '"system:serviceaccount:moorage:governor" cannot get resource "baremetalhosts" in API '
            'group "metal3.io" in the namespace "metal3"'
        )
        leases = "/apis/coordination.k8s.io/v1/namespaces"
        assert (await refused(api.get(f"{leases}/moorage/leases/leader")))[0] == 404
        assert (await refused(api.get(f"{leases}/moorage/leases/another")))[0] == 403
        assert (await refused(api.get(f"{leases}/metal3/leases/leader")))[0] == 403
        assert (await refused(api.merge(f"{ONE}/status", {})))[0] == 403
        async with Kubernetes(double.url, token="wrong") as stranger:
            assert (await refused(stranger.get(CORE + "/secrets")))[0] == 401
        async with Kubernetes(double.url, token="root") as root:
            assert (await root.get(CORE + "/secrets"))["items"] == []
        assert len(double.access.denied) == 4

    governor: Account = service_account(ROLES, "moorage", "governor")
    play(scene, accounts={"secret": governor, "root": ADMIN})
