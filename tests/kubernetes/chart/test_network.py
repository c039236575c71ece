"""What the chart lets in and out: policies of the network, and the paths of routes."""

from typing import Any

import pytest

from tests.kubernetes.chart.helm import Helm, Object, named
from tests.kubernetes.chart.sets import DATABASE, EVERYTHING, NAME_SERVER, OUTSIDE, PEER, SETS


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster."""
    return Helm(tmp_path_factory.mktemp("helm"))


def called(objects: list[Object]) -> list[tuple[list[int], list[Object]]]:
    """Return which ports the server may call, and where; no peers: everywhere."""
    egress = named(objects, "NetworkPolicy/moorage-server")["spec"]["egress"]
    return [
        ([port["port"] for port in rule.get("ports", [])], rule.get("to", [])) for rule in egress
    ]


def test_the_policy_lets_the_server_reach_its_database_and_keystone(
    helm: Helm,
) -> None:
    """Besides name servers, and what `serverEgress` adds; with SQLite nothing else.

    Where a value lists peers, only these; everywhere otherwise.
    """
    made = {name: helm.template(SETS[name]) for name in ("postgresql", "keystone", "everything")}
    assert called(made["postgresql"]) == [([53, 53], []), ([5432, 5433], [])]
    assert called(made["keystone"]) == [
        ([53, 53], [NAME_SERVER]),
        ([5432], [DATABASE]),
        ([5000], [PEER]),
    ]
    assert called(made["everything"]) == [([53, 53], []), ([], [OUTSIDE])]


@pytest.mark.parametrize(
    ("address", "ports"),
    [
        ("postgresql://moorage@db/moorage", [5555]),
        ("postgresql://moorage@db-1:6432/moorage?sslmode=require", [6432]),
        ("postgresql://10.0.0.15,10.0.0.16/moorage", [5555]),
        ("postgresql://[fd00::15],[fd00::16]:6432/moorage", [5555, 6432]),
        ("postgresql:///moorage?host=db", [5555]),
    ],
)
def test_the_policy_reads_the_ports_of_the_database(
    helm: Helm, address: str, ports: list[int]
) -> None:
    """Each host may have its own; `postgresqlPort` is for those without."""
    database = {"engine": "postgresql", "postgresql": {"address": address}}
    policy = {"enabled": True, "postgresqlPort": 5555}
    values = {**SETS["sqlite"], "server": {"database": database}, "networkPolicy": policy}
    assert called(helm.template(values))[-1] == (ports, [])


@pytest.mark.parametrize(
    ("address", "port"),
    [
        ("https://keystone.example:5000/v3", 5000),
        ("https://keystone.example/v3", 443),
        ("http://keystone.example/v3", 80),
        ("https://10.0.0.15/v3", 443),
        ("https://keystone-2/v3", 443),
        ("http://10.0.0.15:5000/v3", 5000),
        ("https://[fd00::15]/v3", 443),
        ("https://[fd00::15]:5000/v3", 5000),
    ],
)
def test_the_policy_reads_the_port_of_keystone(helm: Helm, address: str, port: int) -> None:
    """The digits at the end of a host are not a port."""
    keystone = SETS["keystone"]
    settings = {**keystone["server"]["settings"], "keystone_url": address}
    objects = helm.template({**keystone, "server": {**keystone["server"], "settings": settings}})
    assert called(objects)[-1] == ([port], [PEER])


def published(values: dict[str, Any], helm: Helm) -> list[dict[str, bool]]:
    """Return which paths the Ingress and the HTTPRoute publish, and whether each is a prefix."""
    everything: dict[str, Any] = {
        **EVERYTHING,
        **{part: {**EVERYTHING[part], **values.get(part, {})} for part in ("ingress", "httpRoute")},
        "server": {**EVERYTHING["server"], **values.get("server", {})},
    }
    objects = helm.template(everything)
    hosts = named(objects, "Ingress/moorage")["spec"]["rules"]
    (rule,) = named(objects, "HTTPRoute/moorage")["spec"]["rules"]
    return [
        *({one["path"]: one["pathType"] == "Prefix" for one in r["http"]["paths"]} for r in hosts),
        {one["path"]["value"]: one["path"]["type"] == "PathPrefix" for one in rule["matches"]},
    ]


def reaches(paths: dict[str, bool], path: str) -> bool:
    """Return whether a path is published; prefixes are of whole segments."""
    return any(
        path == one or (prefix and f"{path}/".startswith(f"{one.rstrip('/')}/"))
        for one, prefix in paths.items()
    )


PLACEMENT = ("/resource_providers", "/allocation_candidates", "/allocations/1", "/reshaper")
OTHERS = ("/", "/v1/leases", "/v1/openapi.json", "/ui", "/ui/pools/builds", "/readyz")


def test_routes_do_not_publish_the_metrics(helm: Helm) -> None:
    """All other paths of the server are published, also below a path."""
    plain: dict[str, Any] = {}
    below = {"path": "/placement"}
    prefixed = {"settings": {"path_prefix": "/placement"}}
    for values, prefixes in (
        (plain, [""]),
        ({"ingress": below, "httpRoute": below, "server": prefixed}, ["/placement"]),
        ({"server": prefixed}, ["", "/placement"]),
    ):
        for paths in published(values, helm):
            assert len(paths) <= 64  # of one rule of an HTTPRoute
            for prefix in prefixes:
                missing = [one for one in (*PLACEMENT, *OTHERS) if not reaches(paths, prefix + one)]
                assert not missing
                assert not prefix or reaches(paths, prefix)
                for metrics in ("/metrics", "/metrics/", "/%6detrics", "//metrics"):
                    assert not reaches(paths, prefix + metrics), metrics
