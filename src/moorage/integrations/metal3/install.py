"""Puts the documents together that limit metal3 in a cluster."""

import re
from dataclasses import dataclass
from enum import StrEnum

from moorage.integrations.metal3.manifests.reading import manifest

NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@%~+-]{0,499}")
"""What needs no quotes in YAML: images, pools and addresses."""


class AdmissionMethod(StrEnum):
    """What adds the pause."""

    POLICY = "policy"
    """MutatingAdmissionPolicy of Kubernetes 1.36 and later."""
    POLICY_V1BETA1 = "policy-v1beta1"
    """The same of Kubernetes 1.34 and 1.35, where the feature gate is on."""
    WEBHOOK = "webhook"


class InstallError(ValueError):
    """A value cannot be used; the message says which and what to change."""


@dataclass(frozen=True, kw_only=True)
class Installation:
    """What is installed. `gated`: `moorage gate` stands before Ironic."""

    image: str
    pool: str
    url: str
    namespace: str = "moorage"
    admission: AdmissionMethod = AdmissionMethod.POLICY
    gated: bool = False


def documents(wanted: Installation) -> str:
    """Return all documents as YAML, in the order to apply them. Raises InstallError."""
    if not NAMESPACE.fullmatch(wanted.namespace):
        raise InstallError("--namespace must be a DNS label: a-z, 0-9 and '-', at most 63")
    for option, value in (("image", wanted.image), ("pool", wanted.pool), ("url", wanted.url)):
        if not PLAIN.fullmatch(value):
            raise InstallError(f"--{option} has a character that is not allowed in a manifest")
    if wanted.gated:
        failing = ("Ignore", "The gate before Ironic still limits what is written without a pause.")
    else:
        failing = ("Fail", "Nothing else limits a host that is written without a pause.")
    beta = wanted.admission is AdmissionMethod.POLICY_V1BETA1
    values = {
        "failure_policy": failing[0],
        "failure_reason": failing[1],
        "image": wanted.image,
        "namespace": wanted.namespace,
        "policy_version": "v1beta1" if beta else "v1",
        "pool": wanted.pool,
        "url": wanted.url,
    }
    second = "webhook" if wanted.admission is AdmissionMethod.WEBHOOK else "policy"
    return "---\n".join(manifest(name, values) for name in ("governor", second))
