"""Rules files: every error says what to change, and each node gets the units that it needs."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from moorage.integrations.ironic.nodes import known_of
from moorage.integrations.ironic.rules import FIELDS, Rules, parse, read, warm_of
from moorage.integrations.provisioning.rules import RulesError, value_of

NODE = {
    "uuid": "u-1",
    "name": "node-1",
    "provision_state": "available",
    "conductor": "cond 1/a",
    "properties": {"rack": "7", "cpus": 8, "site": "fra-2"},
    "instance_info": {"image_source": "http://images/base.qcow2"},
    "deploy_interface": "direct",
    "boot_interface": "ipxe",
}

RACKS = """
[[rule]]
pool = "deploy"

[[rule]]
pool = "deploy/rack-{properties.rack}"
otherwise = "deploy/rack-unknown"
verbs = ["active", "rebuild"]
units = 2
where = { "properties.site" = ["fra-*", "ber-*"], deploy_interface = "direct" }

[[rule]]
pool = "fetch/{conductor}"
first_of_image = true

[[exempt]]
where = { boot_interface = "*virtual-media*" }
"""


def rules(text: str = RACKS) -> Rules:
    """Return the rules of a file."""
    return parse(tomllib.loads(text))


def units(node: dict[str, Any], verb: str = "active", warm: Any = ()) -> dict[str, int]:
    """Return what a node needs."""
    return dict(rules().needs(node, {verb}, warm).units)


def test_all_rules_that_match_count_together() -> None:
    """A node needs units of all of its pools; other characters than letters are replaced."""
    assert units(NODE) == {"deploy": 1, "deploy/rack-7": 2, "fetch/cond-1-a": 1}


def test_verbs() -> None:
    """A rule with verbs counts only for those; by default for all."""
    assert units(NODE, "inspect") == {"deploy": 1, "fetch/cond-1-a": 1}


def test_conditions() -> None:
    """All fields of a rule must match one of their patterns."""
    elsewhere = {**NODE, "properties": {"rack": "7", "site": "ams-1"}}
    assert "deploy/rack-7" not in units(elsewhere)
    assert "deploy/rack-7" in units({**NODE, "properties": {"rack": "7", "site": "ber-9"}})


def test_nodes_without_the_field() -> None:
    """They use the other pool, or none if there is none."""
    bare = {**NODE, "properties": {"site": "fra-1"}, "conductor": None}
    assert units(bare) == {"deploy": 1, "deploy/rack-unknown": 2}


def test_the_first_of_an_image() -> None:
    """Once a node of the same conductor is active with the image, the others need no such unit."""
    warm = warm_of([{**NODE, "provision_state": "active"}])
    assert "fetch/cond-1-a" not in units(NODE, warm=warm)
    assert "fetch/c-2" in units({**NODE, "conductor": "c-2"}, warm=warm)
    assert warm_of([NODE]) == set()


def test_exempt_nodes() -> None:
    """They are counted, but never held back."""
    assert not rules().needs(NODE, {"active"}, ()).exempt
    media = {**NODE, "boot_interface": "redfish-virtual-media"}
    needs = rules().needs(media, {"active"}, ())
    assert needs.exempt
    assert needs.units


def test_fields_and_pools() -> None:
    """What must be read, and which pools must exist, follows from the rules."""
    found = rules()
    assert found.fields == sorted(
        {*FIELDS, "conductor", "properties", "deploy_interface", "boot_interface"}
    )
    assert found.pools == ["deploy", "deploy/rack-unknown"]
    assert Rules.of_pool("x").pools == ["x"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("name", "node-1"), ("properties.cpus", "8"), ("properties", None), ("name.x", None)],
)
def test_values(name: str, value: str | None) -> None:
    """Text and numbers are values; objects and missing members are not."""
    assert value_of(NODE, name) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "rule"),
        ("rule = []", ">= 1"),
        ("[[rule]]", "pool"),
        ("[[rule]]\npool = ''", ">= 1"),
        ("[[rule]]\npool = 'a'\nunits = 0", ">= 1"),
        ("[[rule]]\npool = 'a'\nverb = 'active'", "verb"),
        ("[[rule]]\npool = 'a'\nverbs = []", ">= 1"),
        ("[[rule]]\npool = 'a'\nverbs = ['fly']", "not a verb of Ironic"),
        ("[[rule]]\npool = 'a/{rack'", "{NAME}"),
        ("[[rule]]\npool = 'a'\notherwise = 'b/{conductor}'", "{NAME}"),
        ("[[rule]]\npool = 'a'\nwhere = { 'No Field' = 'x' }", "No Field"),
        ("[[rule]]\npool = 'a'\n[[exempt]]\nwhere = {}", "exempt"),
        ("[[rule]]\npool = 'a'\n[[exempt]]", "where"),
        ("other = 1\n[[rule]]\npool = 'a'", "other"),
    ],
)
def test_errors(text: str, said: str) -> None:
    """The message names what is wrong."""
    with pytest.raises(RulesError) as error:
        rules(text)
    assert said in str(error.value)


@pytest.mark.parametrize("content", [b"[[rule", b"\xff", b"[[rule]]"])
def test_files(content: bytes, tmp_path: Path) -> None:
    """The message names the file."""
    file = tmp_path / "rules.toml"
    file.write_bytes(content)
    with pytest.raises(RulesError, match=r"rules\.toml"):
        read(file)


def test_old_versions_have_no_owners() -> None:
    """Ironic refuses a list of fields with one that its version does not have."""
    assert known_of(FIELDS, "1.82").split(",") == [*FIELDS]
    assert not {"owner", "lessee"} & {*known_of(FIELDS, "1.49").split(",")}
    assert known_of(("owner", "lessee", "uuid"), "1.50") == "owner,uuid"
