"""Which units hosts of metal3 need, by the rules of an operator."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from moorage.integrations.metal3.hosts import Verb
from moorage.integrations.metal3.rules import Rules, fields_of, parse, read
from moorage.integrations.provisioning.rules import FILE_BYTES_MAX, RulesError

HOST: dict[str, Any] = {
    "metadata": {
        "name": "a",
        "namespace": "edge-1",
        "uid": "1",
        "labels": {"rack": "r 7", "topology.kubernetes.io/zone": "z1", "urgent": "true"},
    },
    "spec": {
        "online": True,
        "bmc": {"address": "redfish-virtualmedia+https://192.0.2.1/redfish/v1"},
        "image": {"url": "https://example.org/a.qcow2", "format": "qcow2"},
        "bootMode": "UEFI",
        "consumerRef": {"kind": "Metal3Machine", "name": "m-1"},
    },
    "status": {
        "hardware": {
            "cpu": {"arch": "x86_64"},
            "systemVendor": {"manufacturer": "Dell", "productName": "R640"},
        }
    },
}
DELETED = {**HOST, "metadata": {**HOST["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
BARE: dict[str, Any] = {"metadata": {"name": "b"}, "spec": None, "status": "odd"}


def rules(text: str) -> Rules:
    """Return the rules of a file with this text."""
    return parse(tomllib.loads(text))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://images/a.qcow2", "https://images/a.qcow2"),
        ("https://user:pa@ss@images/a?X-Signature=secret", "https://images/a"),
        ("http://user:secret@images?a=/@b#c", "http://images"),
        ("oci://images/a@sha256:12", "oci://images/a@sha256:12"),
        ("https://images/a\n?token=secret\n", "https://images/a\n"),
        (3, None),
    ],
)
def test_an_image_without_its_secrets(url: Any, shown: str | None) -> None:
    """Pools are named by it, and everybody may read their names."""
    image = {**HOST, "spec": {"image": {"url": url}}}
    assert fields_of(image).get("image") == shown


def test_fields() -> None:
    """A rule can use what people know of a host; what a host does not have is not a field."""
    found = dict(fields_of(HOST))
    labels = found.pop("labels")
    assert labels["rack"] == "r 7"
    assert found == {
        "name": "a",
        "namespace": "edge-1",
        "image": "https://example.org/a.qcow2",
        "image_format": "qcow2",
        "online": "true",
        "bmc": "redfish-virtualmedia+https",
        "boot_mode": "UEFI",
        "architecture": "x86_64",
        "consumer": "m-1",
        "vendor": "Dell",
        "product": "R640",
    }
    assert fields_of(BARE) == {"name": "b", "namespace": "default", "online": "false"}


@pytest.mark.parametrize(
    ("text", "verb", "host", "units"),
    [
        ('pool = "p"', Verb.INSPECT, HOST, {"p": 1}),
        ('pool = "p"\nverbs = ["provision"]', Verb.INSPECT, BARE, {}),
        ('pool = "p"\nverbs = ["provision"]', Verb.INSPECT, HOST, {"p": 1}),
        ('pool = "p"\nverbs = ["provision"]', Verb.DEPROVISION, HOST, {"p": 1}),
        ('pool = "p"\nverbs = ["provision"]', Verb.DEPROVISION, DELETED, {}),
        ('pool = "p"\nverbs = ["provision"]\nunits = 3', Verb.PROVISION, HOST, {"p": 3}),
        ('pool = "rack-{labels.rack}"', Verb.PREPARE, HOST, {"rack-r-7": 1}),
        ('pool = "zone-{labels.topology.kubernetes.io/zone}"', Verb.PREPARE, HOST, {"zone-z1": 1}),
        ('pool = "rack-{labels.rack}"', Verb.PREPARE, BARE, {}),
        ('pool = "rack-{labels.rack}"\notherwise = "no"', Verb.PREPARE, BARE, {"no": 1}),
        ('pool = "p"\nwhere = { image = "https://example.org/*" }', Verb.PROVISION, HOST, {"p": 1}),
        ('pool = "p"\nwhere = { online = "true" }', Verb.PROVISION, BARE, {}),
        ('pool = "p"\nwhere = { namespace = ["edge-*", "x"] }', Verb.PROVISION, HOST, {"p": 1}),
    ],
)
def test_needs(text: str, verb: Verb, host: dict[str, Any], units: dict[str, int]) -> None:
    """A host needs the units of all rules that match it."""
    assert rules(f"[[rule]]\n{text}").needs(host, verb).units == units


def test_exempt_hosts() -> None:
    """They are counted, but never held back."""
    found = rules('[[rule]]\npool = "p"\n[[exempt]]\nwhere = { "labels.urgent" = "true" }')
    assert (found.needs(HOST, Verb.PROVISION).exempt, found.pools) == (True, ["p"])
    assert found.needs(BARE, Verb.PROVISION).exempt is False
    assert Rules.of_pool("p").needs(BARE, Verb.PROVISION).units == {"p": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "rule"),
        (
            '[[rule]]\npool = "p"\nverbs = ["active"]',
            "'active' is not a verb of metal3; the verbs are",
        ),
        ('[[rule]]\npool = "{rack}"', "'rack' is not a field of a host; the fields are name, "),
        ('[[rule]]\npool = "{labels}"', "write a label as labels.NAME"),
        ('[[rule]]\npool = "{name.rack}"', "'name.rack' is not a field of a host"),
        ('[[rule]]\npool = "{labels.rack"', "write a field of the host as {NAME}"),
        ('[[rule]]\npool = "p"\nwhere = { name = [] }', "length >= 1"),
        ('[[rule]]\npool = "p"\n' + "#" * FILE_BYTES_MAX, f"more than {FILE_BYTES_MAX} bytes"),
        ('[[rule]]\npool = "p"\nwhere = { conductor = "c" }', "'conductor' is not a field"),
        ('[[rule]]\npool = "p"\n[[exempt]]\nwhere = {}', "needs 'where' with a field"),
        ('[[rule]]\npool = "p"\nfirst_of_image = true', "first_of_image"),
        ('[[client]]\nname = "x"', "client"),
    ],
)
def test_invalid_rules(text: str, words: str, tmp_path: Path) -> None:
    """The error names the file, and says what to change."""
    file = tmp_path / "rules.toml"
    file.write_text(text)
    with pytest.raises(RulesError) as refusal:
        read(file)
    assert words in str(refusal.value) and str(file) in str(refusal.value)
