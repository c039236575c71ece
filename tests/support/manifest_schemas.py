"""JSON schemas of the kinds in the manifests, with the fields that these use.

Written from Kubernetes' API reference (kubernetes.io/docs/reference/kubernetes-api, version 1.36)
and from cert-manager's (cert-manager.io/docs/reference/api-docs).
"""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
NAME: Schema = {"type": "string", "pattern": r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"}
NUMBER: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
MAP: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
EMPTY: Schema = {"type": "object", "maxProperties": 0}
FAILURE: Schema = {"enum": ["Fail", "Ignore"]}
REINVOCATION: Schema = {"enum": ["Never", "IfNeeded"]}
MATCH: Schema = {"enum": ["Exact", "Equivalent"]}


def some(of: Schema, most: int = 64) -> Schema:
    """Return the schema of a list that is not empty."""
    return {"type": "array", "minItems": 1, "maxItems": most, "items": of}


def fields(required: str = "", **known: Schema) -> Schema:
    """Return the schema of an object without other fields."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": known,
    }


def kind(name: str, versions: list[str], **known: Schema) -> Schema:
    """Return the schema of a kind."""
    metadata = fields("name", name=NAME, namespace=NAME, labels=MAP, annotations=MAP)
    return fields(
        f"apiVersion kind metadata {' '.join(known)}",
        apiVersion={"enum": versions},
        kind={"const": name},
        metadata=metadata,
        **known,
    )


RULE = fields(
    "operations apiGroups apiVersions resources",
    operations=some({"enum": ["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]}),
    apiGroups=some({"type": "string"}),
    apiVersions=some(TEXT),
    resources=some(TEXT),
    scope={"enum": ["Cluster", "Namespaced", "*"]},
)
CONDITION = fields("name expression", name=NAME, expression=TEXT)
POLICY = fields(
    "matchConstraints mutations reinvocationPolicy",
    failurePolicy=FAILURE,
    reinvocationPolicy=REINVOCATION,
    matchConstraints=fields("resourceRules", matchPolicy=MATCH, resourceRules=some(RULE)),
    matchConditions=some(CONDITION),
    mutations=some(
        fields(
            "patchType jsonPatch",
            patchType={"const": "JSONPatch"},
            jsonPatch=fields("expression", expression=TEXT),
        )
    ),
)
HOOK = fields(
    "name admissionReviewVersions clientConfig sideEffects",
    name={"type": "string", "pattern": r"^[a-z0-9-]+(\.[a-z0-9-]+){2,}$"},
    admissionReviewVersions=some(TEXT),
    clientConfig=fields(
        "service",
        service=fields("name namespace", name=NAME, namespace=NAME, path=TEXT, port=NUMBER),
    ),
    failurePolicy=FAILURE,
    matchPolicy=MATCH,
    reinvocationPolicy=REINVOCATION,
    rules=some(RULE),
    sideEffects={"enum": ["None", "NoneOnDryRun"]},
    timeoutSeconds={"type": "integer", "minimum": 1, "maximum": 30},
)
PROBE = fields(
    httpGet=fields("path port", path=TEXT, port=TEXT, scheme={"enum": ["HTTP", "HTTPS"]}),
    tcpSocket=fields("port", port=TEXT),
    failureThreshold=NUMBER,
    periodSeconds=NUMBER,
    timeoutSeconds=NUMBER,
)
CONTAINER = fields(
    "name image",
    name=NAME,
    image=TEXT,
    command=some(TEXT),
    ports=some(fields("containerPort", containerPort=NUMBER, name=NAME)),
    startupProbe=PROBE,
    livenessProbe=PROBE,
    readinessProbe=PROBE,
    lifecycle=fields(preStop=fields(sleep=fields("seconds", seconds=NUMBER))),
    resources=fields(requests=MAP, limits=MAP),
    securityContext=fields(
        allowPrivilegeEscalation=FLAG,
        readOnlyRootFilesystem=FLAG,
        capabilities=fields(drop=some(TEXT)),
    ),
    volumeMounts=some(fields("name mountPath", name=NAME, mountPath=TEXT, readOnly=FLAG)),
)
SPREAD = fields(
    "maxSkew topologyKey whenUnsatisfiable",
    maxSkew=NUMBER,
    topologyKey=TEXT,
    whenUnsatisfiable={"enum": ["DoNotSchedule", "ScheduleAnyway"]},
    labelSelector=fields(matchLabels=MAP),
    matchLabelKeys=some(TEXT),
)
POD = fields(
    "containers",
    serviceAccountName=NAME,
    automountServiceAccountToken=FLAG,
    securityContext=fields(
        runAsNonRoot=FLAG,
        runAsUser=NUMBER,
        runAsGroup=NUMBER,
        seccompProfile=fields("type", type={"enum": ["RuntimeDefault"]}),
    ),
    containers=some(CONTAINER),
    volumes=some(
        {
            "oneOf": [
                fields("name secret", name=NAME, secret=fields("secretName", secretName=NAME)),
                fields(
                    "name configMap",
                    name=NAME,
                    configMap=fields("name", name=NAME, optional=FLAG),
                ),
            ]
        }
    ),
    topologySpreadConstraints=some(SPREAD),
)
DEPLOYMENT = fields(
    "selector template",
    replicas=NUMBER,
    selector=fields("matchLabels", matchLabels=MAP),
    template=fields(
        "metadata spec", metadata=fields("labels", labels=MAP, annotations=MAP), spec=POD
    ),
)
REFERENCE = fields("kind name", apiGroup=TEXT, kind=TEXT, name=NAME)

SCHEMAS = {
    "Certificate": kind(
        "Certificate",
        ["cert-manager.io/v1"],
        spec=fields(
            "secretName issuerRef",
            secretName=NAME,
            dnsNames=some(NAME),
            issuerRef=fields("name", kind={"enum": ["Issuer", "ClusterIssuer"]}, name=NAME),
        ),
    ),
    "ClusterRole": kind(
        "ClusterRole",
        ["rbac.authorization.k8s.io/v1"],
        rules=some(
            fields(
                "apiGroups resources verbs",
                apiGroups=some({"type": "string"}),
                resources=some(TEXT),
                resourceNames=some(TEXT),
                verbs=some(TEXT),
            )
        ),
    ),
    "ClusterRoleBinding": kind(
        "ClusterRoleBinding",
        ["rbac.authorization.k8s.io/v1"],
        roleRef=REFERENCE,
        subjects=some(fields("kind name", kind=TEXT, name=NAME, namespace=NAME)),
    ),
    "ConfigMap": kind(
        "ConfigMap",
        ["v1"],
        data={
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": r"^[A-Za-z0-9._-]{1,253}$"},
            "additionalProperties": {"type": "string"},
        },
    ),
    "Deployment": kind("Deployment", ["apps/v1"], spec=DEPLOYMENT),
    "Issuer": kind("Issuer", ["cert-manager.io/v1"], spec=fields("selfSigned", selfSigned=EMPTY)),
    "MutatingAdmissionPolicy": kind(
        "MutatingAdmissionPolicy",
        ["admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1"],
        spec=POLICY,
    ),
    "MutatingAdmissionPolicyBinding": kind(
        "MutatingAdmissionPolicyBinding",
        ["admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1"],
        spec=fields("policyName", policyName=NAME),
    ),
    "MutatingWebhookConfiguration": kind(
        "MutatingWebhookConfiguration", ["admissionregistration.k8s.io/v1"], webhooks=some(HOOK)
    ),
    "Namespace": kind("Namespace", ["v1"]),
    "PodDisruptionBudget": kind(
        "PodDisruptionBudget",
        ["policy/v1"],
        spec=fields(
            "selector",
            maxUnavailable=NUMBER,
            unhealthyPodEvictionPolicy={"enum": ["AlwaysAllow", "IfHealthyBudget"]},
            selector=fields("matchLabels", matchLabels=MAP),
        ),
    ),
    "Service": kind(
        "Service",
        ["v1"],
        spec=fields(
            "selector ports",
            selector=MAP,
            ports=some(fields("port", name=NAME, port=NUMBER, targetPort=TEXT)),
        ),
    ),
    "ServiceAccount": kind("ServiceAccount", ["v1"], automountServiceAccountToken=FLAG),
}
