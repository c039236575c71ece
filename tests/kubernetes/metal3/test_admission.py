"""Each row of the table of writes, on a real API server: by the policy, and by the webhook.

A host is stored as it was, as a user whose writes nobody changes. Then it is written in each way
in which clients write, first as a dry run. The answer has our pause exactly if the row says so, and
is otherwise what was written.
"""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from moorage.integrations.metal3.hosts import OWN, PAUSED
from tests.kubernetes.cluster import KubernetesCluster, tool
from tests.kubernetes.metal3.installed import applied, manifests, policy, webhook
from tests.support.admission_cases import CASES, GOVERNOR, Case
from tests.support.kubernetes_client import Answered, Kubernetes, Object, hosts_in
from tests.support.kubernetes_double.patches import merged

ALL = hosts_in("metal3")
METADATA = ("annotations", "labels", "finalizers")
FINALIZER = ["test.moorage.dev/hold"]
AT_ONCE = 8
INVALID = 422
NEW_STATUS: Object = {
    "errorCount": 0,
    "errorMessage": "",
    "operationalStatus": "OK",
    "poweredOn": False,
    "provisioningFailCount": 0,
}
"""What metal3's schema requires of a status."""


@dataclass(frozen=True)
class Write:
    """The write of a case in one way, to a host of its own."""

    case: Case
    way: str
    name: str

    @property
    def path(self) -> str:
        """The path of its host."""
        return f"{ALL}/{self.name}"

    def host(self, part: Object) -> Object:
        """Return a host of the case with all that clients write, except for its status."""
        metadata = {key: part["metadata"][key] for key in METADATA if key in part["metadata"]}
        if "deletionTimestamp" in part["metadata"]:
            metadata["finalizers"] = FINALIZER
        return {
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "metadata": {"name": self.name, "namespace": "metal3", **metadata},
            "spec": part["spec"],
        }

    @property
    def has_null(self) -> bool:
        """Whether it says null where metal3's schema wants an object."""
        return self.way != "merge" and None in self.case.new["spec"].values()

    def expected(self) -> dict[str, str]:
        """Return the annotations that are stored."""
        found = dict(self.case.new["metadata"].get("annotations") or {})
        return {**found, PAUSED: OWN} if self.case.pauses else found


class Table:
    """Writes all rows; `problems` has what deviates, `refused` the rows with null that were."""

    def __init__(self, cluster: KubernetesCluster, prefix: str) -> None:
        self._cluster, self._prefix = cluster, prefix
        self.problems: list[str] = []
        self.deviating: set[str] = set()
        self.refused: set[str] = set()
        self.written = 0

    async def run(self, *, ways: tuple[str, ...], dry: bool = True) -> None:
        """Write every row in these ways."""
        async with AsyncExitStack() as stack:
            users = {case.user for case in CASES} | {GOVERNOR}
            self._as = {
                user: await stack.enter_async_context(
                    Kubernetes(
                        self._cluster.url,
                        token=self._cluster.token,
                        tls=self._cluster.tls,
                        user=user,
                    )
                )
                for user in users
            }
            gate = asyncio.Semaphore(AT_ONCE)

            async def one(write: Write) -> None:
                async with gate:
                    await self._write(write, dry=dry)

            await asyncio.gather(*(one(write) for write in self._writes(ways)))

    def _writes(self, ways: tuple[str, ...]) -> Iterator[Write]:
        for number, case in enumerate(CASES):
            for way in ways:
                if case.old is not None or way in ("put", "apply"):
                    yield Write(case, way, f"{self._prefix}-{number}-{way}")

    async def _write(self, write: Write, *, dry: bool) -> None:
        before = None if write.case.old is None else await self._stored(write)
        if dry:
            await self._look(write, before, dryRun="All")
            version = None if before is None else before["metadata"]["resourceVersion"]
            if await self._version(write) != version:
                self._deviates(write, "the dry run has stored something")
        await self._look(write, before)

    async def _stored(self, write: Write) -> Object:
        """Store the host as it was, with its fields owned by the one who writes it next."""
        old, api = write.case.old, self._as[GOVERNOR]
        assert old is not None
        found: Object = await api.apply(write.path, write.host(old), write.case.manager)
        if (status := old.get("status")) is not None:
            provisioning = {"ID": "", **status["provisioning"]}
            whole = {**NEW_STATUS, **status, "provisioning": provisioning}
            found = await api.update(f"{write.path}/status", {**found, "status": whole})
        if "deletionTimestamp" in old["metadata"]:
            await api.delete(write.path)
            found = await api.get(write.path)
        return found

    async def _version(self, write: Write) -> str | None:
        try:
            found = await self._as[GOVERNOR].get(write.path)
        except Answered as answered:
            assert answered.code == 404
            return None
        return str(found["metadata"]["resourceVersion"])

    async def _look(self, write: Write, before: Object | None, **query: str) -> None:
        self.written += 1
        try:
            answer = await self._sent(write, before, query)
        except Answered as answered:
            if write.has_null and answered.code == INVALID:
                self.refused.add(write.case.what)
            else:
                self._deviates(write, f"{answered.code} {answered.body.get('message')}")
            return
        found = answer["metadata"].get("annotations") or {}
        if found != write.expected():
            self._deviates(write, f"{query}: annotations {found}")

    def _deviates(self, write: Write, why: str) -> None:
        self.problems.append(f"{write.case.what}, by {write.way}: {why}")
        self.deviating.add(write.case.what)

    async def _sent(self, write: Write, before: Object | None, query: dict[str, str]) -> Any:
        api, case = self._as[write.case.user], write.case
        wanted = write.host(case.new)
        asked = {"fieldManager": case.manager, **query}
        if write.way == "apply":
            manager = asked.pop("fieldManager")
            return await api.apply(write.path, wanted, manager, force="true", **asked)
        if "status" in case.new:
            wanted["status"] = case.new["status"]
        if before is None:
            return await api.create(ALL, wanted, **asked)
        match write.way:
            case "put":
                version = before["metadata"]["resourceVersion"]
                wanted["metadata"]["resourceVersion"] = version
                return await api.update(write.path, wanted, **asked)
            case "merge":
                return await api.merge(write.path, merge_patch(before, wanted), **asked)
            case _:
                return await api.json_patch(write.path, json_patch(before, wanted), **asked)


def written(host: Object) -> Object:
    """Return the part of a host that patches change."""
    metadata = {key: host["metadata"][key] for key in METADATA if key in host["metadata"]}
    return {"metadata": metadata, "spec": host["spec"]}


def merge_patch(before: Object, after: Object) -> Object:
    """Return the merge patch from a host to another."""
    patch = difference(written(before), written(after))
    assert merged(written(before), patch) == without_nulls(written(after))
    return patch


def difference(before: Object, after: Object) -> Object:
    """Return the merge patch from an object to another."""
    patch: Object = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        known = before.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            patch[key] = difference(known, value)
        elif value != known or key not in before:
            patch[key] = value
    return patch


def without_nulls(one: Any) -> Any:
    """Return an object without its fields that are null: a merge patch removes them."""
    if not isinstance(one, dict):
        return one
    return {key: without_nulls(value) for key, value in one.items() if value is not None}


def json_patch(before: Object, after: Object) -> list[Object]:
    """Return the JSON patch from a host to another."""
    patch: list[Object] = [{"op": "replace", "path": "/spec", "value": after["spec"]}]
    for key in METADATA:
        path = f"/metadata/{key}"
        if key in after["metadata"]:
            patch.append({"op": "add", "path": path, "value": after["metadata"][key]})
        elif key in before["metadata"]:
            patch.append({"op": "remove", "path": path})
    return patch


WAYS = ("put", "merge", "json", "apply")
NULLS = {case.what for case in CASES if None in case.new["spec"].values()}
PAUSING = {case.what for case in CASES if case.pauses}


def check(cluster: KubernetesCluster, prefix: str) -> None:
    """Write all rows in all ways; nothing deviates."""
    table = Table(cluster, prefix)
    asyncio.run(table.run(ways=WAYS))
    assert table.problems == []
    assert table.refused <= NULLS
    assert table.written > 2 * len(CASES) * 2


def test_the_policy_pauses_what_the_table_says(cluster: KubernetesCluster) -> None:
    """All writes of all rows, and what it adds is all that changes."""
    with policy(cluster):
        check(cluster, "policy")


def test_the_webhook_pauses_what_the_table_says(cluster: KubernetesCluster, tmp_path: Path) -> None:
    """The same by the webhook, which the API server reaches by the name of its Service."""
    with webhook(cluster, tmp_path):
        check(cluster, "webhook")


def test_without_either_the_table_deviates(cluster: KubernetesCluster) -> None:
    """The control: exactly the rows that pause deviate, but for those that are refused."""
    table = Table(cluster, "control")
    asyncio.run(table.run(ways=("put",), dry=False))
    assert table.deviating == PAUSING - table.refused


CONTROL = {"expression": "object.spec.wrong == 1"}


def warnings(cluster: KubernetesCluster, validations: list[Object]) -> list[Object]:
    """Return what Kubernetes' type checker says of conditions about hosts."""
    found = next(
        one for one in yaml.safe_load_all(manifests()) if one["kind"] == "MutatingAdmissionPolicy"
    )
    document = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "types.moorage.dev"},
        "spec": {
            "matchConstraints": found["spec"]["matchConstraints"],
            "validations": validations
            or [{"expression": one["expression"]} for one in found["spec"]["matchConditions"]],
        },
    }
    applied(cluster, json.dumps(document), "--dry-run=server")
    done = subprocess.run(
        [tool("policytypes"), str(cluster.admin)],
        input=json.dumps(document),
        capture_output=True,
        text=True,
        check=True,
        timeout=60.0,
    )
    said: list[Object] = json.loads(done.stdout) or []
    return said


def test_the_conditions_have_no_type_errors(cluster: KubernetesCluster) -> None:
    """A MutatingAdmissionPolicy is not checked by Kubernetes; the same conditions in a
    ValidatingAdmissionPolicy are. The control shows that the schema of hosts was read.
    """
    for _ in range(20):  # the description of a new resource is published a moment later
        if found := warnings(cluster, [CONTROL]):
            break
    assert "undefined field 'wrong'" in found[0]["warning"]
    assert "".join(one["warning"] for one in warnings(cluster, [])) == ""
