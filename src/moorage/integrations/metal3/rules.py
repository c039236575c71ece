"""Which units a BareMetalHost needs for which work: the rules of an operator.

`provisioning/rules.py` describes the format of a rules file. The fields of a host are

    name, namespace, labels.NAME     # of its metadata
    image, image_format, deploy      # the URL, its format; the method of a custom deployment
                                     # (without user, password and query)
    online                           # true, false
    bmc                              # how its BMC is reached: redfish-virtualmedia, ipmi
    boot_mode, architecture, profile, consumer
    vendor, product                  # as its inspection has found them

A host that has an image when it begins is provisioned without another start: it needs the units
for `provision` from its first verb on.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from moorage.integrations.metal3.hosts import BareMetalHost, Verb, verbs_of
from moorage.integrations.metal3.status import mapping_of, status_of
from moorage.integrations.provisioning import rules
from moorage.integrations.provisioning.rules import (
    RULES_MAX,
    Condition,
    ExemptTable,
    Fields,
    Needs,
    Rule,
    RulesError,
    RuleTable,
)

FIELDS = (
    *("name", "namespace", "labels", "image", "image_format", "deploy", "online", "bmc"),
    *("boot_mode", "architecture", "profile", "consumer", "vendor", "product"),
)
"""The names of all fields."""

SECRET = re.compile(r"\A([A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@|[?#].*\Z", re.DOTALL)
"""User and password of a URL, and its query: a signature, or a token."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """All rules of an operator."""

    rules: tuple[Rule, ...]
    exempt: tuple[Condition, ...] = ()

    @classmethod
    def of_pool(cls, pool: str) -> "Rules":
        """Return the rules without a file: each busy host has one unit of a pool."""
        return cls(rules=(Rule(pool=pool),))

    @property
    def pools(self) -> list[str]:
        """The names of pools without fields, which must exist when a process starts."""
        return rules.fixed_pools(self.rules)

    def needs(self, host: BareMetalHost, verb: Verb) -> Needs:
        """Return what a host needs for a verb, and for what follows without another start."""
        return self.needs_for(host, verbs_of(host, verb))

    def needs_for(self, host: BareMetalHost, all_verbs: Collection[Verb]) -> Needs:
        """Return what a host needs for some verbs alone."""
        fields, verbs = fields_of(host), {one.value for one in all_verbs}
        matching = (rule for rule in self.rules if rule.matches(fields, verbs))
        return rules.needs_of(matching, self.exempt, fields)


def fields_of(host: BareMetalHost) -> Fields:
    """Return the fields of a host, for rules; those that it does not have are missing."""
    metadata, spec = host["metadata"], mapping_of(host.get("spec"))
    image, hardware = (
        mapping_of(spec.get("image")),
        mapping_of(status_of(host).get("hardware")),
    )
    vendor, consumer = mapping_of(hardware.get("systemVendor")), mapping_of(spec.get("consumerRef"))
    found: dict[str, Any] = {
        "name": metadata["name"],
        "namespace": metadata.get("namespace", "default"),
        "labels": mapping_of(metadata.get("labels")),
        "image": _public(image.get("url")),
        "image_format": image.get("format"),
        "deploy": mapping_of(spec.get("customDeploy")).get("method"),
        "online": str(bool(spec.get("online"))).lower(),
        "bmc": str(mapping_of(spec.get("bmc")).get("address") or "").partition(":")[0],
        "boot_mode": spec.get("bootMode"),
        "architecture": spec.get("architecture") or mapping_of(hardware.get("cpu")).get("arch"),
        "profile": spec.get("hardwareProfile"),
        "consumer": consumer.get("name"),
        "vendor": vendor.get("manufacturer"),
        "product": vendor.get("productName"),
    }
    return {name: value for name, value in found.items() if value}


def image_of(host: BareMetalHost) -> str:
    """Return the image that a host is to have, or how it is deployed; empty: it has none."""
    fields = fields_of(host)
    return str(fields.get("image") or fields.get("deploy") or "")


def read(path: Path) -> Rules:
    """Read a rules file. Raises RulesError, OSError."""
    return rules.read(path, parse)


def parse(content: Mapping[str, Any]) -> Rules:
    """Convert the content of a rules file. Raises RulesError."""
    file = rules.converted(content, _File)
    found = Rules(
        rules=tuple(_rule(one) for one in file.rule), exempt=rules.exemptions(file.exempt)
    )
    for name in sorted(rules.fields_of(found.rules, found.exempt)):
        head, dot, _ = name.partition(".")
        if head not in FIELDS or bool(dot) is not (head == "labels"):
            raise RulesError(
                f"'{name}' is not a field of a host; the fields are {', '.join(FIELDS)}; write a"
                f" label as labels.NAME."
            )
    return found


class _File(Struct, forbid_unknown_fields=True):
    """The whole file."""

    rule: Annotated[list[RuleTable], Meta(min_length=1, max_length=RULES_MAX)]
    exempt: Annotated[list[ExemptTable], Meta(max_length=RULES_MAX)] = []


def _rule(given: RuleTable) -> Rule:
    settings = rules.settings_of(given, [verb.value for verb in Verb], "metal3")
    return Rule(**settings)


def _public(url: Any) -> Any:
    """Return a URL without what may be secret: it may name a pool, and everybody reads that."""
    return SECRET.sub(r"\1", url) if isinstance(url, str) else None
