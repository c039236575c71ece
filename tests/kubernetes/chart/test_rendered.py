"""What the chart makes from values, without a cluster."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.integrations.ironic.gate.process import CLOSE_SECONDS, FINISH_SECONDS
from moorage.integrations.ironic.gate.spool import ALL_BYTES_MAX
from tests.kubernetes.chart.helm import CHART, Helm, Object, Refused, name_of, named, pods
from tests.kubernetes.chart.sets import EVERYTHING, IMAGE, MADE, RULES, SETS
from tests.kubernetes.cluster import ROOT
from tests.support.alert_rules import alerts, parsed_rules

each_set = pytest.mark.parametrize("name", SETS)


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster."""
    return Helm(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def made(helm: Helm) -> dict[str, list[Object]]:
    """The objects of all sets."""
    return {name: helm.template(values) for name, values in SETS.items()}


@pytest.mark.parametrize("name", sorted({*SETS} - {"older"}))
def test_lint_is_silent(helm: Helm, name: str) -> None:
    """`helm lint --strict` has neither errors nor warnings."""
    said = helm.run("lint", "--strict", str(CHART), values=SETS[name])
    assert "[WARNING]" not in said and "[ERROR]" not in said


def test_lint_warns_of_the_older_policy(helm: Helm) -> None:
    """This is the control: Helm knows that the version for Kubernetes 1.34 and 1.35 will go."""
    with pytest.raises(Refused, match=r"v1beta1 MutatingAdmissionPolicy is deprecated in v1\.37"):
        helm.run("lint", "--strict", str(CHART), values=SETS["older"])


@each_set
def test_what_is_made(made: dict[str, list[Object]], name: str) -> None:
    """Each set makes these objects, each once, all of them in the namespace of the release."""
    objects = made[name]
    assert sorted(map(name_of, objects)) == sorted(MADE[name])
    for one in objects:
        if not re.match("Cluster|Mutating", one["kind"]):
            assert one["metadata"]["namespace"] == "moorage", name_of(one)


def objections(pod: Object) -> list[str]:
    """Return what a pod may do although it does not need to, and what it lacks."""
    spec, found = pod["spec"], []
    whole = spec["securityContext"]
    if not (whole["runAsNonRoot"] and whole["runAsUser"] == 65_532):
        found.append("may be root")
    if whole["seccompProfile"] != {"type": "RuntimeDefault"}:
        found.append("has no seccomp profile")
    governor = pod["metadata"]["labels"]["app.kubernetes.io/name"] == "moorage-governor"
    if spec["automountServiceAccountToken"] is not governor:
        found.append("has a token of Kubernetes, or has none")
    for one in [*spec.get("initContainers", []), *spec["containers"]]:
        allowed = one["securityContext"]
        if allowed != {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }:
            found.append(f"{one['name']} has privileges")
        if not one["resources"]["requests"]:
            found.append(f"{one['name']} asks for no resources")
    (main,) = spec["containers"]
    missing = {"livenessProbe", "readinessProbe"} - main.keys()
    if missing and "sigwait" not in str(main["command"]):
        found.append(f"{main['name']} has no {missing}")
    return found


@each_set
def test_pods_are_confined(made: dict[str, list[Object]], name: str) -> None:
    """No pod is root or has privileges; only the governor has a token; all are probed."""
    assert {one: objections(pod) for one, pod in pods(made[name]).items()} == {
        one: [] for one in pods(made[name])
    }


def test_a_loose_pod_is_found(helm: Helm) -> None:
    """This is the control: values that loosen the contexts are noticed."""
    loose = {"podSecurityContext": {"runAsUser": 0}, "containerSecurityContext": {}}
    values = {**SETS["sqlite"], **loose, "containerSecurityContext": {"privileged": True}}
    (pod,) = pods(helm.template(values)).values()
    assert {"may be root", "server has privileges", "folder has privileges"} <= {*objections(pod)}


@each_set
def test_secrets_are_only_named(made: dict[str, list[Object]], name: str) -> None:
    """No object is a Secret, and each variable with a secret comes from one."""
    for one in made[name]:
        assert one["kind"] != "Secret"
    for pod in pods(made[name]).values():
        for container in pod["spec"]["containers"]:
            for variable in container.get("env", []):
                if re.search("PASSWORD$|TOKEN$", variable["name"]):
                    assert "secretKeyRef" in variable["valueFrom"], variable


def selected(pod: Object, labels: dict[str, str]) -> bool:
    """Return whether labels select a pod."""
    own: dict[str, str] = pod["metadata"]["labels"]
    return labels.items() <= own.items()


@each_set
def test_everything_that_selects_pods_finds_them(made: dict[str, list[Object]], name: str) -> None:
    """Services, budgets, policies and monitors select the pods of one workload, and their ports."""
    found = pods(made[name])
    services = [one for one in made[name] if one["kind"] == "Service"]
    for one in made[name]:
        spec = one.get("spec", {})
        match one["kind"]:
            case "Service":
                labels, ports = spec["selector"], [p["targetPort"] for p in spec["ports"]]
            case "PodDisruptionBudget":
                labels, ports = spec["selector"]["matchLabels"], []
            case "PodMonitor":
                labels = spec["selector"]["matchLabels"]
                ports = [end["port"] for end in spec["podMetricsEndpoints"]]
            case "NetworkPolicy":
                labels = spec["podSelector"]["matchLabels"]
                ports = [p["port"] for rule in spec["ingress"] for p in rule["ports"]]
            case "ServiceMonitor":
                (service,) = [
                    each
                    for each in services
                    if spec["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items()
                ]
                assert [end["port"] for end in spec["endpoints"]] == ["http"]
                assert service["spec"]["ports"][0]["name"] == "http"
                continue
            case _:
                continue
        (pod,) = [pod for pod in found.values() if selected(pod, labels)]
        served = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
        assert set(ports) <= served, name_of(one)


@each_set
def test_what_pods_use_is_there(made: dict[str, list[Object]], name: str) -> None:
    """Each mount has its volume, each volume a mount, each account and own ConfigMap its object."""
    names = {name_of(one) for one in made[name]}
    for pod in pods(made[name]).values():
        spec = pod["spec"]
        assert f"ServiceAccount/{spec['serviceAccountName']}" in names
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        mounted = {
            mount["name"]
            for one in [*spec.get("initContainers", []), *spec["containers"]]
            for mount in one["volumeMounts"]
        }
        assert mounted == volumes.keys()
        for volume in volumes.values():
            config = volume.get("configMap", {"name": "", "optional": True})
            if config["name"].startswith("moorage-") and not config.get("optional"):
                assert f"ConfigMap/{config['name']}" in names


INSTALLED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a pool": ({"pool": "deploy"}, ["--pool", "deploy"]),
    "v1beta1": (
        {"pool": "rack/a-1", "admission": "policy-v1beta1"},
        ["--pool", "rack/a-1", "--admission", "policy-v1beta1"],
    ),
    "gated": ({"pool": "deploy", "gated": True}, ["--pool", "deploy", "--gate"]),
    "rules": ({"rules": RULES}, ["--rules", "rules.toml"]),
    "a webhook": (
        {"rules": RULES, "admission": "webhook"},
        ["--rules", "rules.toml", "--admission", "webhook"],
    ),
}


@pytest.mark.parametrize("case", INSTALLED)
def test_the_governor_is_that_of_the_command(helm: Helm, tmp_path: Path, case: str) -> None:
    """The chart makes the objects that `moorage metal3 install` prints, but not the namespace."""
    values, options = INSTALLED[case]
    (tmp_path / "rules.toml").write_text(RULES)
    url = "https://moorage.example:8778"
    printed = subprocess.run(
        [
            *(sys.executable, "-m", "moorage", "metal3", "install", "--print", "--url", url),
            *("--image", f"{IMAGE['repository']}:{IMAGE['tag']}", *options),
        ],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    ).stdout
    wanted = {name_of(one): one for one in yaml.load_all(printed, yaml.CSafeLoader)}
    del wanted["Namespace/moorage"]
    rendered = helm.template(
        {
            "image": IMAGE,
            "server": {"enabled": False},
            "moorageUrl": url,
            "governor": {"enabled": True, **values},
        }
    )
    assert {name_of(one): one for one in rendered} == wanted


def test_what_only_the_chart_can_say_about_the_governor(made: dict[str, list[Object]]) -> None:
    """Its pods get their place, their authorities, and the token under its own name."""
    pod = pods(made["everything"])["Deployment/moorage-governor"]["spec"]
    (container,) = pod["containers"]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert container["imagePullPolicy"] == "Always"
    assert container["resources"] == {"requests": {"memory": "64Mi"}}
    assert container["env"] == [{"name": "SSL_CERT_FILE", "value": "/authorities/ca.crt"}]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["moorage"]["secret"] == {
        "secretName": "governs",
        "items": [{"key": "secret", "path": "token"}],
    }
    assert volumes["authorities"]["configMap"]["items"] == [{"key": "bundle.pem", "path": "ca.crt"}]
    assert "--url=https://moorage.moorage.svc:8778" in container["command"]


def test_the_alerts_are_ours(made: dict[str, list[Object]]) -> None:
    """The PrometheusRule has the alerts of contrib/, whose job is the one of the ServiceMonitor."""
    assert named(made["everything"], "PrometheusRule/moorage")["spec"] == parsed_rules()
    (end,) = named(made["everything"], "ServiceMonitor/moorage")["spec"]["endpoints"]
    (job,) = [one["replacement"] for one in end["relabelings"] if one["targetLabel"] == "job"]
    asked = {job for one in alerts() for job in re.findall(r'job="(\w+)"', one["expr"])}
    assert asked == {job}


def variables(objects: list[Object], name: str) -> dict[str, Any]:
    """Return the variables of the first container of a workload."""
    container = pods(objects)[name]["spec"]["containers"][0]
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}


def test_settings_become_variables(made: dict[str, list[Object]]) -> None:
    """Numbers are written out, lists get commas; host names are those of Service and routes."""
    found = variables(made["everything"], "StatefulSet/moorage")
    assert found["MOORAGE_CHANGES_BYTES_MAX"] == "900000000"
    assert found["MOORAGE_HEADER_SECONDS_MAX"] == "7.5"
    assert found["MOORAGE_ENDED_LEASES_HOURS"] == "48"
    assert found["MOORAGE_ACCESS_LOG"] == "false"
    assert found["MOORAGE_TRUSTED_PROXIES"] == "10.0.0.0/8,192.0.2.1"
    assert found["MOORAGE_ALLOWED_HOSTS"].split(",") == [
        *("moorage", "moorage.moorage", "moorage.moorage.svc"),
        *("moorage.moorage.svc.cluster.local", "moorage.example.org", "placement.example.org"),
        *("moorage.example.net", "moorage.internal"),
    ]


def test_processes_on_postgresql_are_replaced_one_by_one(made: dict[str, list[Object]]) -> None:
    """A new one is ready before an old one ends, which gets time to finish; they are spread."""
    spec = named(made["postgresql"], "Deployment/moorage")["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    pod = spec["template"]["spec"]
    wait = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] >= wait + 10  # of the process: operate.md
    assert {one["topologyKey"] for one in pod["topologySpreadConstraints"]} == {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    }


def test_a_gate_gets_the_time_that_it_needs_to_stop(made: dict[str, list[Object]]) -> None:
    """Nodes learn first that it gets no new connections; then it finishes what Ironic has."""
    pod = pods(made["everything"])["Deployment/moorage-gate"]["spec"]
    wait = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] >= wait + FINISH_SECONDS + CLOSE_SECONDS


def test_what_protects_a_ledger_in_sqlite(made: dict[str, list[Object]]) -> None:
    """At most one pod at any time, which can be replaced even if it is never ready; its files keep
    their modes when the volume is mounted again; the volume outlives the release.
    """
    spec = named(made["sqlite"], "StatefulSet/moorage")["spec"]
    assert (spec["replicas"], spec["podManagementPolicy"]) == (1, "Parallel")
    pod = spec["template"]["spec"]
    assert pod["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"
    assert "preStop" not in pod["containers"][0].get("lifecycle", {})  # nobody else could serve
    claim = named(made["sqlite"], "PersistentVolumeClaim/moorage-data")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


BYTES = {"Mi": 1 << 20, "Gi": 1 << 30}


def size(text: str) -> int:
    """Return a size in bytes."""
    return int(text[:-2]) * BYTES[text[-2:]]


@each_set
def test_no_pod_fills_the_disk_of_its_node(made: dict[str, list[Object]], name: str) -> None:
    """Folders that are lost with a pod have a limit, and a pod asks for the sum of them."""
    for one, pod in pods(made[name]).items():
        volumes = [each for each in pod["spec"]["volumes"] if "emptyDir" in each]
        needed = sum(size(each["emptyDir"]["sizeLimit"]) for each in volumes)
        if needed:
            (container,) = pod["spec"]["containers"]
            assert size(container["resources"]["requests"]["ephemeral-storage"]) >= needed, one


def test_bodies_fit_into_the_folder_of_the_gate(made: dict[str, list[Object]]) -> None:
    """Kubernetes does not evict a gate that keeps as many bodies as it may."""
    (tmp,) = [
        each
        for each in pods(made["gate"])["Deployment/moorage-gate"]["spec"]["volumes"]
        if each["name"] == "tmp"
    ]
    assert size(tmp["emptyDir"]["sizeLimit"]) > ALL_BYTES_MAX


def test_other_names_of_the_release(helm: Helm) -> None:
    """Objects have the name of the release, also if it is long or does not contain ours."""
    for release, name in {
        "capacity": "capacity-moorage",
        "moorage-2": "moorage-2",
        f"moorage-{'x' * 45}": f"moorage-{'x' * 32}",
    }.items():
        objects = helm.template(EVERYTHING, release=release)
        assert f"StatefulSet/{name}" in map(name_of, objects)
        assert f"Deployment/{name}-gate" in map(name_of, objects)
        hosts = variables(objects, f"StatefulSet/{name}")["MOORAGE_ALLOWED_HOSTS"]
        assert f"{name}.moorage.svc" in hosts.split(",")


def test_it_can_be_part_of_another_chart(helm: Helm, tmp_path: Path) -> None:
    """Values that Helm passes to all charts are not refused."""
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: site\nversion: 1.0.0\n")
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts/moorage").symlink_to(CHART)
    values = {"global": {"site": "a"}, "moorage": SETS["sqlite"]}
    objects = helm.template(values, chart=tmp_path)
    assert {name_of(one) for one in objects} == MADE["sqlite"]


def test_an_old_kubernetes_is_refused(helm: Helm) -> None:
    """The chart names the version that it needs."""
    with pytest.raises(Refused, match=r"kubeVersion: >=1\.30"):
        helm.template(SETS["sqlite"], "--kube-version", "1.29.3")


def test_a_package_is_the_same(helm: Helm, tmp_path: Path) -> None:
    """`helm package`, and what a release packs, leave nothing out that the templates need."""
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    helm.run("package", str(CHART), "--destination", str(tmp_path))
    ours = tmp_path / "ours.tgz"
    packed = [sys.executable, str(ROOT / "scripts/pack"), str(CHART), "moorage", str(ours)]
    subprocess.run(packed, env={**os.environ, "SOURCE_DATE_EPOCH": "315532800"}, check=True)
    for package in (tmp_path / f"moorage-{version}.tgz", ours):
        assert helm.template(EVERYTHING, chart=package) == helm.template(EVERYTHING)
