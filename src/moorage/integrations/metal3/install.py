"""Puts the documents together that limit metal3 in a cluster."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from importlib.resources import files
from string import Template

from moorage.client.run.printing import printable
from moorage.integrations.kubernetes.names import LABEL_TEXT, is_label

MANIFESTS = "moorage.integrations.metal3.manifests"
FILES = ("namespace", "rules", "governor", "policy", "webhook")
"""The manifests, in the order in which they are applied."""


def manifest(name: str, values: Mapping[str, str]) -> str:
    """Return the YAML documents of a manifest. Raises KeyError: a value is missing."""
    text = files(MANIFESTS).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return Template(text).substitute(values)


PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@%~+\[\]-]{0,499}")
"""Texts that need no quotes in YAML: images, pools and addresses, also those of IPv6."""

RULES_BYTES_MAX = 200_000
"""Of a rules file: `kubectl apply` stores each object a second time, in at most 256 KiB."""


class AdmissionMethod(StrEnum):
    """The mechanism that adds the pause."""

    POLICY = "policy"
    """MutatingAdmissionPolicy of Kubernetes 1.36 and later."""
    POLICY_V1BETA1 = "policy-v1beta1"
    """The same of Kubernetes 1.34 and 1.35, where the feature gate is on."""
    WEBHOOK = "webhook"


class InstallError(ValueError):
    """A value cannot be used; the message says which and what to change."""


@dataclass(frozen=True, kw_only=True)
class Installation:
    """The options of an installation: `pool`, or `rules`, the text of a valid rules file.

    `gated`: `moorage gate` stands before Ironic.
    """

    image: str
    url: str
    pool: str | None = None
    rules: str | None = None
    namespace: str = "moorage"
    admission: AdmissionMethod = AdmissionMethod.POLICY
    gated: bool = False


def documents(wanted: Installation) -> str:
    """Return all documents as YAML, in the order to apply them. Raises InstallError."""
    if not is_label(wanted.namespace):
        raise InstallError(f"--namespace must be {LABEL_TEXT}")
    for option in ("image", "pool", "url"):
        value = getattr(wanted, option)
        if value is not None and not PLAIN.fullmatch(value):
            raise InstallError(
                f"--{option} {value!r} cannot stand in a manifest: use 1 to 500 letters, digits and"
                " ._/:@%~+[]-, with a letter or digit first"
            )
    if wanted.gated:
        failing = (
            "Ignore",
            "The gate before Ironic still limits hosts that are written without a pause.",
        )
    else:
        failing = ("Fail", "Nothing else limits a host that is written without a pause.")
    beta = wanted.admission is AdmissionMethod.POLICY_V1BETA1
    values = {
        "failure_policy": failing[0],
        "failure_reason": failing[1],
        "image": wanted.image,
        "namespace": wanted.namespace,
        "policy_version": "v1beta1" if beta else "v1",
        "url": wanted.url,
        **_limits(wanted),
    }
    rules = () if wanted.rules is None else ("rules",)
    last = "webhook" if wanted.admission is AdmissionMethod.WEBHOOK else "policy"
    return "---\n".join(manifest(name, values) for name in ("namespace", *rules, "governor", last))


def _limits(wanted: Installation) -> Mapping[str, str]:
    """Return what the manifests say of the pool or of the rules. Raises InstallError."""
    if wanted.rules is None:
        limits = f"--pool={wanted.pool}"
        return {"limits": limits, "rules": "", "rules_hash": "none", "rules_optional": "true"}
    lines = wanted.rules.rstrip().split("\n")
    for number, line in enumerate(lines, 1):
        # YAML has more line breaks than TOML: one in a comment would end the block. And what the
        # command would escape is not the file's any more.
        shown = line.replace("\t", " ")
        if printable(shown) != shown:
            raise InstallError(
                f"--rules: line {number} has a character that is not allowed in a manifest"
            )
    if len(wanted.rules.encode()) > RULES_BYTES_MAX:
        raise InstallError(f"--rules: the file has more than {RULES_BYTES_MAX} bytes")
    return {
        "limits": "--rules=/rules/rules.toml",
        "rules": "\n".join(f"    {line}" if line else "" for line in lines),
        "rules_hash": f'"{sha256(wanted.rules.encode()).hexdigest()}"',
        "rules_optional": "false",
    }
