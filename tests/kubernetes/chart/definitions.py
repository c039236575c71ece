"""Definitions of the kinds that other projects add to Kubernetes, with the fields that we use.

Unknown fields are refused as by the real ones, whose names and types these have: those of the
Prometheus operator (monitoring.coreos.com/v1), of the Gateway API (v1) and of cert-manager (v1).
"""

from typing import Any

from tests.support.kubernetes_double.host_schema import FLAG, NUMBER, TEXT, Schema, fields, some

MAP: Schema = {"type": "object", "additionalProperties": TEXT}
SELECTOR = fields("matchLabels", matchLabels=MAP)
RELABELING = fields(
    action={"type": "string", "enum": ["replace", "keep", "drop"]},
    replacement=TEXT,
    targetLabel=TEXT,
)
INTERVAL: Schema = {"type": "string", "pattern": "^(0|(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?)$"}
SCRAPED = {
    "port": TEXT,
    "path": TEXT,
    "interval": INTERVAL,
    "scheme": {"type": "string", "enum": ["http", "https"]},
    "relabelings": some(RELABELING),
}
RULE = fields(
    "expr",
    alert=TEXT,
    expr={"anyOf": [NUMBER, TEXT], "x-kubernetes-int-or-string": True},
    **{"for": INTERVAL},
    labels=MAP,
    annotations=MAP,
)
DURATION: Schema = {"type": "string", "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$"}
ROUTE = fields(
    matches=some(
        fields(
            path=fields(type={"type": "string", "enum": ["Exact", "PathPrefix"]}, value=TEXT),
        )
    ),
    timeouts=fields(request=DURATION, backendRequest=DURATION),
    backendRefs=some(fields("name", name=TEXT, port=NUMBER)),
)


def definition(group: str, version: str, kind: str, spec: Schema) -> dict[str, Any]:
    """Return the definition of a kind of namespaced objects."""
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/pull/1"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": fields("spec", spec=spec)},
                }
            ],
        },
    }


DEFINITIONS = [
    definition(
        "monitoring.coreos.com",
        "v1",
        "ServiceMonitor",
        fields(
            "endpoints selector",
            selector=SELECTOR,
            endpoints=some(fields(**SCRAPED, tlsConfig=fields(insecureSkipVerify=FLAG))),
        ),
    ),
    definition(
        "monitoring.coreos.com",
        "v1",
        "PodMonitor",
        fields("selector", selector=SELECTOR, podMetricsEndpoints=some(fields(**SCRAPED))),
    ),
    definition(
        "monitoring.coreos.com",
        "v1",
        "PrometheusRule",
        fields(groups=some(fields("name", name=TEXT, interval=INTERVAL, rules=some(RULE)))),
    ),
    definition(
        "gateway.networking.k8s.io",
        "v1",
        "HTTPRoute",
        fields(
            hostnames=some(TEXT),
            parentRefs=some(fields("name", name=TEXT, namespace=TEXT, sectionName=TEXT)),
            rules=some(ROUTE),
        ),
    ),
    definition("cert-manager.io", "v1", "Issuer", fields(selfSigned={"type": "object"})),
    definition(
        "cert-manager.io",
        "v1",
        "Certificate",
        fields(
            "issuerRef secretName",
            secretName=TEXT,
            dnsNames=some(TEXT),
            issuerRef=fields("name", kind=TEXT, name=TEXT),
        ),
    ),
]
