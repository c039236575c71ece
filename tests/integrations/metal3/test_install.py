"""What is installed in a cluster, and how it leaves it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import jsonschema
import pytest
import yaml

from moorage.integrations.kubernetes.api import PAGE, Connection, KubernetesApi, KubernetesError
from moorage.integrations.metal3.hosts import OWN, PAUSED
from moorage.integrations.metal3.install import (
    AdmissionMethod,
    Installation,
    InstallError,
    documents,
)
from moorage.integrations.metal3.uninstall import UninstallError, uninstall
from tests.support.kubernetes_client import Kubernetes, host, hosts_in
from tests.support.kubernetes_double.faults import Fault
from tests.support.kubernetes_double.server import KubernetesDouble
from tests.support.manifest_schemas import SCHEMAS

ALL = hosts_in("metal3")
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WANTED: dict[str, Any] = {"image": "registry.example/moorage:1", "pool": "deploy"}
URL = "https://moorage.example"


@pytest.mark.parametrize("admission", AdmissionMethod)
@pytest.mark.parametrize(("gated", "policy"), [(True, "Ignore"), (False, "Fail")])
def test_a_failure_lets_writes_pass_only_where_the_gate_limits(
    admission: AdmissionMethod, gated: bool, policy: str
) -> None:
    """All documents are valid; without the gate a write that cannot be paused is refused."""
    text = documents(Installation(**WANTED, url=URL, admission=admission, gated=gated))
    found = list(yaml.safe_load_all(text))
    for one in found:
        jsonschema.validate(one, SCHEMAS[one["kind"]])
    assert f"failurePolicy: {policy}" in text
    kinds = {one["kind"] for one in found}
    assert ("MutatingWebhookConfiguration" in kinds) is (admission is AdmissionMethod.WEBHOOK)
    assert ("MutatingAdmissionPolicyBinding" in kinds) is (admission is not AdmissionMethod.WEBHOOK)


@pytest.mark.parametrize(
    "more",
    [
        {"namespace": "Moorage"},
        {"namespace": "a\nb"},
        {"image": 'i"\nb: c'},
        {"pool": "a b"},
        {"url": "https://a\n- --evil"},
    ],
)
def test_a_value_cannot_change_the_documents(more: dict[str, str]) -> None:
    """A value with characters that mean something in YAML is refused."""
    with pytest.raises(InstallError, match="--"):
        documents(Installation(**{**WANTED, "url": URL, **more}))


def only(text: str, kind: str) -> Any:
    """Return the one document of a kind."""
    (found,) = [one for one in yaml.safe_load_all(text) if one["kind"] == kind]
    return found


RULES = """  # a comment

[[rule]]
pool = 'deploy/{labels.rack}'   # ünïcode: | > ${x} %s
otherwise = "deploy/other"
\t
[[exempt]]
where = { name = ["a: b", "- c", "#"] }


"""


def test_rules_are_mounted_as_they_are() -> None:
    """The governor reads the file from a ConfigMap, which its pods need; the rules that they read
    are those of the file, and other rules make other pods.
    """
    wanted = {"image": WANTED["image"], "url": URL}
    text = documents(Installation(**wanted, rules=RULES))
    for one in yaml.safe_load_all(text):
        jsonschema.validate(one, SCHEMAS[one["kind"]])
    stored = only(text, "ConfigMap")
    assert stored["data"] == {"rules.toml": RULES.rstrip() + "\n"}
    pods = only(text, "Deployment")["spec"]["template"]
    (container,) = pods["spec"]["containers"]
    (mount,) = [one for one in container["volumeMounts"] if one["name"] == "rules"]
    (volume,) = [one for one in pods["spec"]["volumes"] if one["name"] == "rules"]
    assert volume["configMap"] == {"name": stored["metadata"]["name"], "optional": False}
    assert f"--rules={mount['mountPath']}/rules.toml" in container["command"]
    assert not any(word.startswith("--pool") for word in container["command"])
    other = only(documents(Installation(**wanted, rules=RULES + "# more")), "Deployment")
    assert pods["metadata"]["annotations"] != other["spec"]["template"]["metadata"]["annotations"]
    again = only(documents(Installation(**wanted, rules=RULES)), "Deployment")
    assert pods == again["spec"]["template"]
    with_pool = only(documents(Installation(**WANTED, url=URL)), "Deployment")
    (container,) = with_pool["spec"]["template"]["spec"]["containers"]
    assert "--pool=deploy" in container["command"]


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("a\n#\u2028kind: Secret", "line 2 has a character"),
        ("#\x85b", "line 1 has a character"),
        ("#\x00", "line 1 has a character"),
        ("# \u3164", "line 1 has a character"),
        ("# e\u0301\u0301\u0301\u0301\u0301", "line 1 has a character"),
        ("# ä" * 100_000, "more than 200000 bytes"),
    ],
)
def test_rules_that_cannot_be_stored(rules: str, said: str) -> None:
    """The error names the line; no line break of YAML ends the rules early."""
    with pytest.raises(InstallError, match=said):
        documents(Installation(image="i", url=URL, rules=rules))


def play(scene: Callable[[KubernetesDouble, Kubernetes, KubernetesApi], Awaitable[None]]) -> None:
    """Run a scene with a double, a client, and our client."""

    async def run() -> None:
        async with (
            KubernetesDouble() as double,
            Kubernetes(double.url) as client,
            KubernetesApi(Connection(double.url)) as api,
        ):
            await asyncio.wait_for(scene(double, client, api), 60)

    asyncio.run(run())


async def installed(client: Kubernetes) -> None:
    """Store the policy, its binding, and hosts: two with our pause, one with another, one free."""
    for one in yaml.safe_load_all(documents(Installation(**WANTED, url=URL))):
        match one["kind"]:
            case "MutatingAdmissionPolicy":
                await client.create(f"{ADMISSION}/mutatingadmissionpolicies", one)
            case "MutatingAdmissionPolicyBinding":
                await client.create(f"{ADMISSION}/mutatingadmissionpolicybindings", one)
    for name, pause in (("a", OWN), ("b", OWN), ("c", "metal3.io/capm3")):
        await client.create(ALL, host(name, annotations={PAUSED: pause, "mine": "1"}))
    await client.create(ALL, host("d"))


async def pauses(client: Kubernetes) -> dict[str, str | None]:
    """Return the pause of each host."""
    found = (await client.get(ALL))["items"]
    return {
        one["metadata"]["name"]: one["metadata"].get("annotations", {}).get(PAUSED) for one in found
    }


LEFT = {"a": None, "b": None, "c": "metal3.io/capm3", "d": None}


def test_uninstall_leaves_no_host_paused_by_us_and_every_other_pause() -> None:
    """A dry run changes nothing and counts the same; a second run finds nothing; other annotations
    stay; the policy is gone before the first pause is.
    """

    async def scene(double: KubernetesDouble, client: Kubernetes, api: KubernetesApi) -> None:
        await installed(client)
        foretold = await uninstall(api, dry_run=True)
        assert (await pauses(client))["a"] == OWN
        begun = double.storage.version
        steps: list[tuple[int, int]] = []
        removed = await uninstall(
            api,
            dry_run=False,
            settle=0,
            progress=lambda now: steps.append((now.pauses, now.found)),
        )
        assert steps == [(1, 2), (2, 2)]
        assert removed.others == foretold.others == {"metal3/c": "metal3.io/capm3"}
        assert (
            (removed.documents, removed.pauses)
            == (2, 2)
            == (
                foretold.documents,
                foretold.pauses,
            )
        )
        assert await pauses(client) == LEFT
        assert (await client.get(f"{ALL}/a"))["metadata"]["annotations"] == {"mine": "1"}
        changes = [change.key[1] for change in double.storage.after(begun)]
        assert changes[2:] == ["baremetalhosts"] * 2
        again = await uninstall(api, dry_run=False, settle=0)
        assert (again.documents, again.pauses) == (0, 0)

    play(scene)


def test_uninstall_goes_on_while_others_write_and_the_server_is_busy() -> None:
    """A conflict, an expired page and a throttled request are tried again."""

    async def scene(double: KubernetesDouble, client: Kubernetes, api: KubernetesApi) -> None:
        await installed(client)
        before = double.counts["patch", "baremetalhosts"]
        double.faults.pending += [
            Fault("list", "baremetalhosts", answer=410),
            Fault("patch", "baremetalhosts", wait=0.5),
            Fault("patch", "baremetalhosts", answer=429, retry_after=0),
        ]
        removing = asyncio.create_task(uninstall(api, dry_run=False, settle=0))
        await double.received("patch", "baremetalhosts", before + 1)
        held = await client.get(f"{ALL}/a")
        await client.update(f"{ALL}/a", {**held, "spec": {**held["spec"], "online": False}})
        removed = await removing
        sent = double.counts["patch", "baremetalhosts"] - before
        assert sent == 4  # a conflict, a busy answer, and one for each host
        assert removed.pauses == 2
        assert await pauses(client) == LEFT
        assert not double.faults.pending

    play(scene)


def test_uninstall_says_what_the_server_refuses() -> None:
    """A refusal ends it with the server's words, and nothing else is removed."""

    async def scene(double: KubernetesDouble, client: Kubernetes, api: KubernetesApi) -> None:
        await installed(client)
        double.faults.pending.append(Fault("patch", "baremetalhosts", answer=500))
        with pytest.raises(KubernetesError, match="500"):
            await uninstall(api, dry_run=False, settle=0)
        assert (await uninstall(api, dry_run=False, settle=0)).pauses == 2

    play(scene)


def test_uninstall_removes_the_pauses_of_many_hosts() -> None:
    """Hosts of all pages lose our pause."""

    async def scene(double: KubernetesDouble, client: Kubernetes, api: KubernetesApi) -> None:
        for number in range(PAGE + 1):
            await client.create(ALL, host(f"h{number}", annotations={PAUSED: OWN}))
        assert (await uninstall(api, dry_run=False, settle=0)).pauses == PAGE + 1
        assert {*(await pauses(client)).values()} == {None}

    play(scene)


def test_uninstall_says_that_something_pauses_hosts_again() -> None:
    """While something adds our pause to each write, it ends with an error after some rounds."""

    def pausing(_policy: dict[str, Any], _asked: object, wanted: dict[str, Any]) -> dict[str, Any]:
        wanted["metadata"].setdefault("annotations", {})[PAUSED] = OWN
        return wanted

    async def scene(double: KubernetesDouble, client: Kubernetes, api: KubernetesApi) -> None:
        await installed(client)
        other = {"kind": "MutatingAdmissionPolicy", "metadata": {"name": "other"}, "spec": {}}
        await client.create(f"{ADMISSION}/mutatingadmissionpolicies", other)
        binding = {"metadata": {"name": "other"}, "spec": {"policyName": "other"}}
        kind = {"kind": "MutatingAdmissionPolicyBinding"}
        await client.create(f"{ADMISSION}/mutatingadmissionpolicybindings", {**kind, **binding})
        double.admission.engine = pausing
        with pytest.raises(UninstallError, match="2 hosts are paused again and again"):
            await uninstall(api, dry_run=False, settle=0)
        assert (await pauses(client))["c"] == "metal3.io/capm3"

    play(scene)
