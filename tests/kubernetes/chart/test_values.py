"""Every value of the chart changes what it makes: none is read in vain, or from a wrong place."""

from collections.abc import Iterator
from copy import deepcopy
from fnmatch import fnmatchcase
from typing import Any

import pytest
import yaml

from tests.kubernetes.chart.helm import CHART, Helm, Object, Refused
from tests.kubernetes.chart.sets import BOSKOS, GATE_RULES, PEER, SETS

WHOLE = {"podSecurityContext", "containerSecurityContext", "resources"}
"""Values whose fields are Kubernetes', not ours."""

BASES = {
    "image.tag": "sqlite",
    "server.replicas": "postgresql",
    "server.drainSeconds": "postgresql",
    "server.database.postgresql.addressSecret.*": "keystone",
    "server.database.postgresql.*": "postgresql",
    "server.keystonePasswordSecret.*": "keystone",
    "server.podDisruptionBudget.*": "postgresql",
    "server.topologySpreadConstraints": "postgresql",
    "networkPolicy.postgresql*": "postgresql",
    "networkPolicy.keystone": "keystone",
    "networkPolicy.apiServers": "webhook",
    "gate.pool": "gate",
    "governor.pool": "policy",
    "boskos.insecure": "boskos",
}
"""In which set a value matters; by default in that with everything."""

SPREAD = {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
OTHERS: dict[str, Any] = {
    "fullnameOverride": "other",
    "image.repository": "registry.example/other",
    "image.tag": "2.0",
    "image.digest": f"sha256:{'1' * 64}",
    "image.pullPolicy": "Never",
    "imagePullSecrets": [{"name": "other"}],
    "clusterDomain": "cluster.example",
    "moorageUrl": "https://other.example",
    "podSecurityContext": {"runAsUser": 1_000},
    "containerSecurityContext": {"privileged": True},
    "*.replicas": 7,
    "*.drainSeconds": 9,
    "*.startSeconds": 7_201,
    "*.maxUnavailable": 2,
    "*ort": 4_321,
    "*.resources": {"requests": {"cpu": "3"}},
    "*.allowedHosts": ["other.example"],
    "*.hosts": ["other.example"],
    "*.hostnames": ["other.example"],
    "*.bindAddress": "[::]",
    "*.settings": {"log_level": "debug"},
    "*.engine": "postgresql",
    "*.accessMode": "ReadWriteMany",
    "*.size": "11Gi",
    "*.address": "postgresql://other.example/moorage",
    "*.service.type": "NodePort",
    "*nnotations": {"other": "1"},
    "*abels": {"other": "1"},
    "*.nodeSelector": {"other": "1"},
    "*.tolerations": [{"key": "other"}],
    "*.affinity": {"nodeAffinity": {}},
    "*.topologySpreadConstraints": [SPREAD],
    "*.extraEnv": [{"name": "OTHER", "value": "1"}],
    "*.extraVolumes": [{"name": "other", "emptyDir": {}}],
    "*.extraVolumeMounts": [{"name": "more", "mountPath": "/other"}],
    "boskos.config": BOSKOS.replace("slice", "other"),
    "*.rules": GATE_RULES.replace("active", "rebuild"),
    "*.pool": "other",
    "*.ironicUrl": "https://other.example",
    "*.ironicName": "other",
    "*.expected": ["11m"],
    "*.admission": "webhook",
    "*.path": "/other",
    "*.parentRefs": [{"name": "other"}],
    "*.timeouts": {"request": "91s"},
    "networkPolicy.serverEgress": [{"to": [PEER]}],
    "networkPolicy.*": [{"podSelector": {}}],
    "*.interval": "31s",
    "*.tlsConfig": {"serverName": "other"},
    "*": "other",
}
"""Another value, by patterns of paths; the first that matches counts. Flags are turned over."""


def leaves(defaults: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the default of every value."""
    for name, value in defaults.items():
        path = f"{above}{name}"
        if isinstance(value, dict) and value and name not in WHOLE:
            yield from leaves(value, f"{path}.")
        else:
            yield path, value


DEFAULTS = dict(leaves(yaml.safe_load((CHART / "values.yaml").read_text())))


def first(table: dict[str, Any], path: str, otherwise: Any = None) -> Any:
    """Return the entry of the first pattern that matches a path."""
    return next((one for pattern, one in table.items() if fnmatchcase(path, pattern)), otherwise)


def base_of(path: str) -> dict[str, Any]:
    """Return the set in which a value matters."""
    name = first(BASES, path, "everything")
    if name == "boskos":
        return {**SETS["sqlite"], "boskos": {"enabled": True}}
    return SETS[name]


def changed(values: dict[str, Any], path: str) -> dict[str, Any]:
    """Return values of which one is another one."""
    made = deepcopy(values)
    *above, name = path.split(".")
    place = made
    for one in above:
        place = place.setdefault(one, {})
    default = DEFAULTS[path]
    if isinstance(default, bool):
        place[name] = not place.get(name, default)
    else:
        place[name] = first(OTHERS, path)
    return made


def outcome(helm: Helm, values: dict[str, Any]) -> list[Object] | str:
    """Return what the chart makes, or why it makes nothing; an unknown value is a mistake here."""
    try:
        return helm.template(values)
    except Refused as refused:
        assert "don't meet the specifications of the schema" not in str(refused)
        return str(refused)


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster."""
    return Helm(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def before() -> dict[str, list[Object] | str]:
    """What the sets make, as far as it is known already."""
    return {}


@pytest.mark.parametrize("path", DEFAULTS)
def test_each_value_matters(helm: Helm, before: dict[str, list[Object] | str], path: str) -> None:
    """With another value the objects are others, or the values contradict each other."""
    base = base_of(path)
    if (key := repr(base)) not in before:
        before[key] = outcome(helm, base)
    assert outcome(helm, changed(base, path)) != before[key]


def test_a_value_that_nothing_reads_is_found(helm: Helm) -> None:
    """This is the control: `server.tls.secret` does not matter while there is no server."""
    values = SETS["gate"] | {"moorageUrl": "http://moorage.example"}
    other = {**values, "server": {"enabled": False, "tls": {"secret": "other"}}}
    assert outcome(helm, other) == outcome(helm, values)
