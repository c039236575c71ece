"""The sets of values with which the chart is tested, and which objects each of them makes."""

from typing import Any

IMAGE = {"repository": "registry.example/moorage", "tag": "1.0"}
RULES = (
    '[[rule]]\npool = "deploy"\n\n[[rule]]\npool = "rack/{labels.rack}"\n\totherwise = "x"\n\n\n'
)
GATE_RULES = '[[rule]]\npool = "deploy"\nverbs = ["active"]\n'
BOSKOS = "resources:\n- type: slice\n  state: free\n  names: [slice-1, slice-2]\n"
TOLERATION = {"key": "infra", "operator": "Exists", "effect": "NoSchedule"}
PEER = {"namespaceSelector": {"matchLabels": {"team": "ci"}}}
DATABASE = {"ipBlock": {"cidr": "198.51.100.7/32"}}
NAME_SERVER = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
OUTSIDE = {"ipBlock": {"cidr": "192.0.2.0/24"}}

PLACED = {
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [TOLERATION],
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"app": "other"}},
                    },
                }
            ]
        }
    },
    "priorityClassName": "system-cluster-critical",
}

EVERYTHING: dict[str, Any] = {
    "image": {
        "repository": "registry.example/moorage",
        "digest": f"sha256:{'0' * 64}",
        "pullPolicy": "Always",
    },
    "imagePullSecrets": [{"name": "registry"}],
    "trustedAuthorities": {"configMap": "site-authority", "key": "bundle.pem"},
    "server": {
        "allowedHosts": ["moorage.internal"],
        "settings": {
            "log_format": "json",
            "changes_bytes_max": 900_000_000,
            "ended_leases_hours": 48,
            "trusted_proxies": ["10.0.0.0/8", "192.0.2.1"],
            "header_seconds_max": 7.5,
            "access_log": False,
        },
        "backup": {"enabled": True, "storageClass": "slow"},
        "tls": {"secret": "moorage-tls"},
        "service": {"type": "LoadBalancer", "annotations": {"lb.example/scope": "internal"}},
        "podAnnotations": {"example.org/team": "capacity"},
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "extraVolumes": [{"name": "more", "emptyDir": {"sizeLimit": "1Mi"}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
        **PLACED,
    },
    "boskos": {
        "enabled": True,
        "config": BOSKOS,
        "passwordSecret": {"name": "moorage-boskos"},
    },
    "gate": {
        "enabled": True,
        "ironicUrl": "https://ironic.example:6385",
        "ironicName": "site-1",
        "rules": GATE_RULES,
        "tokenSecret": {"name": "moorage-gate", "key": "secret"},
        "ironicTokenSecret": {"name": "ironic-token"},
        "ironicAuthority": {"configMap": "site-authority", "key": "bundle.pem"},
        "tls": {"secret": "gate-tls"},
        "countHolds": True,
        "expected": ["10m", "clean=2h"],
        "podAnnotations": {"example.org/team": "capacity"},
        **PLACED,
    },
    "governor": {
        "enabled": True,
        "rules": RULES,
        "gated": True,
        "tokenSecret": {"name": "governs", "key": "secret"},
        "resources": {"requests": {"memory": "64Mi"}},
        **PLACED,
    },
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "hosts": ["moorage.example.org", "placement.example.org"],
        "tlsSecret": "moorage-outside",
        "annotations": {"nginx.ingress.kubernetes.io/proxy-read-timeout": "90"},
    },
    "httpRoute": {
        "enabled": True,
        "hostnames": ["moorage.example.net"],
        "parentRefs": [{"name": "shared", "namespace": "gateways"}],
        "timeouts": {"request": "90s"},
        "annotations": {"example.org/a": "b"},
    },
    "networkPolicy": {
        "enabled": True,
        "clients": [PEER],
        "prometheus": [PEER],
        "serverEgress": [{"to": [OUTSIDE]}],
    },
    "serviceMonitor": {
        "enabled": True,
        "labels": {"release": "prometheus"},
        "tlsConfig": {"insecureSkipVerify": True},
    },
    "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
}

SETS: dict[str, dict[str, Any]] = {
    "sqlite": {"image": IMAGE},
    "postgresql": {
        "image": IMAGE,
        "server": {
            "replicas": 3,
            "database": {
                "engine": "postgresql",
                "postgresql": {
                    "address": "postgresql://moorage@db1.example,db2.example:5433/moorage",
                    "passwordSecret": {"name": "moorage-database"},
                    "authority": {"configMap": "site-authority"},
                },
            },
        },
        "networkPolicy": {"enabled": True},
    },
    "keystone": {
        "image": IMAGE,
        "server": {
            "replicas": 2,
            "bindAddress": "[::]",
            "database": {
                "engine": "postgresql",
                "postgresql": {"addressSecret": {"name": "moorage-database"}},
            },
            "settings": {"auth": "keystone", "keystone_url": "https://keystone.example:5000/v3"},
            "keystonePasswordSecret": {"name": "moorage-keystone"},
        },
        "networkPolicy": {
            "enabled": True,
            "nameServers": [NAME_SERVER],
            "postgresql": [DATABASE],
            "keystone": [PEER],
        },
    },
    "everything": EVERYTHING,
    "policy": {
        "image": IMAGE,
        "server": {"enabled": False},
        "moorageUrl": "https://moorage.example",
        "governor": {"enabled": True, "pool": "deploy"},
    },
    "older": {
        "image": IMAGE,
        "server": {"enabled": False},
        "moorageUrl": "https://moorage.example",
        "governor": {"enabled": True, "pool": "deploy", "admission": "policy-v1beta1"},
    },
    "webhook": {
        "image": IMAGE,
        "server": {"enabled": False},
        "moorageUrl": "https://moorage.example",
        "governor": {"enabled": True, "rules": RULES, "admission": "webhook", "gated": True},
        "networkPolicy": {
            "enabled": True,
            "apiServers": [OUTSIDE],
        },
        "podMonitor": {"enabled": True},
    },
    "gate": {
        "image": IMAGE,
        "server": {"enabled": False},
        "moorageUrl": "https://moorage.example",
        "gate": {
            "enabled": True,
            "replicas": 1,
            "pool": "deploy",
            "ironicUrl": "http://ironic.openstack.svc:6385",
            "tokenSecret": {"name": "moorage-gate"},
        },
    },
    "maintenance": {
        "image": IMAGE,
        "server": {"maintenance": True, "backup": {"enabled": True, "existingClaim": "copies"}},
    },
}

SERVER = {"ServiceAccount/moorage-server", "Service/moorage"}
GATE = {
    *("ServiceAccount/moorage-gate", "Service/moorage-gate", "Deployment/moorage-gate"),
}
GOVERNOR = {
    *("ServiceAccount/moorage", "ClusterRole/moorage-metal3"),
    *("ClusterRoleBinding/moorage-metal3", "Deployment/moorage-governor"),
}
POLICY = {
    "MutatingAdmissionPolicy/pause.moorage.dev",
    "MutatingAdmissionPolicyBinding/pause.moorage.dev",
}
MADE: dict[str, set[str]] = {
    "sqlite": {*SERVER, "StatefulSet/moorage", "PersistentVolumeClaim/moorage-data"},
    "postgresql": {
        *SERVER,
        *("Deployment/moorage", "PodDisruptionBudget/moorage", "NetworkPolicy/moorage-server"),
    },
    "keystone": {
        *SERVER,
        *("Deployment/moorage", "PodDisruptionBudget/moorage", "NetworkPolicy/moorage-server"),
    },
    "everything": {
        *SERVER,
        *GATE,
        *GOVERNOR,
        *POLICY,
        *("StatefulSet/moorage", "PersistentVolumeClaim/moorage-data"),
        *("PersistentVolumeClaim/moorage-backup", "Service/moorage-boskos"),
        *("ConfigMap/moorage-boskos", "ConfigMap/moorage-gate-rules", "ConfigMap/moorage-rules"),
        *("PodDisruptionBudget/moorage-gate", "Ingress/moorage", "HTTPRoute/moorage"),
        *("NetworkPolicy/moorage-server", "NetworkPolicy/moorage-gate"),
        *("NetworkPolicy/moorage-governor", "ServiceMonitor/moorage", "PrometheusRule/moorage"),
        *("PodMonitor/moorage-gate", "PodMonitor/moorage-governor"),
    },
    "policy": {*GOVERNOR, *POLICY},
    "older": {*GOVERNOR, *POLICY},
    "webhook": {
        *GOVERNOR,
        *("ConfigMap/moorage-rules", "Issuer/moorage-webhook", "Certificate/moorage-webhook"),
        *("ServiceAccount/moorage-webhook", "Deployment/moorage-webhook"),
        *("Service/moorage-webhook", "MutatingWebhookConfiguration/pause.moorage.dev"),
        "PodDisruptionBudget/moorage-webhook",
        *("NetworkPolicy/moorage-governor", "NetworkPolicy/moorage-webhook"),
        "PodMonitor/moorage-governor",
    },
    "gate": GATE,
    "maintenance": {*SERVER, "StatefulSet/moorage", "PersistentVolumeClaim/moorage-data"},
}
"""The kinds and names of the objects that each set makes."""
