"""How a version of Kubernetes serves the policy that pauses hosts."""

from tests.kubernetes.cluster import minor

V1 = 36
"""The first version that serves it as v1, and needs no option for that."""

BETA = ("--runtime-config=admissionregistration.k8s.io/v1beta1=true",)
"""Serves policies in their older version, too, as a cluster that was upgraded may."""

GATE = "--feature-gates=MutatingAdmissionPolicy=true"


def admission() -> str:
    """Return the `--admission` that the guide names for the API server of the tests."""
    return "policy" if minor() >= V1 else "policy-v1beta1"


def version() -> str:
    """Return the version of the API by which the API server of the tests serves policies."""
    return "v1" if minor() >= V1 else "v1beta1"


def serving_policies() -> tuple[str, ...]:
    """Return the options of an API server by which it serves v1beta1, and v1 if it knows that."""
    return BETA if minor() >= V1 else (*BETA, GATE)


def required() -> tuple[str, ...]:
    """Return only the options of an API server that the guide names for its version."""
    return () if minor() >= V1 else serving_policies()
