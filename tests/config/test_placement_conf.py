"""What Placement's configuration means here."""

from pathlib import Path
from typing import Any

import pytest

from moorage.config import ConfigError
from moorage.config.settings import Loaded, load
from tests.cli.command import moorage, refusal
from tests.config.files import KOLLA, OPENSTACK_ANSIBLE, SECRETS, written

URL = "http://192.0.2.10:5000"
PASSWORD = "hunter2"
KEYSTONE = f"""
[keystone_authtoken]
auth_type = password
auth_url = {URL}
username = placement
password = {PASSWORD}
project_name = service
"""


def loaded(folder: Path, text: str, **environ: str) -> Loaded:
    """Return the settings with one file of Placement's."""
    file = folder / "placement.conf"
    file.write_text(text)
    (folder / "moorage.toml").touch()
    return load({}, environ, str(folder / "moorage.toml"), [str(file)])


@pytest.mark.parametrize("text", [KOLLA, OPENSTACK_ANSIBLE])
def test_of_deployment_projects(tmp_path: Path, text: str) -> None:
    """Their files are followed; what has no effect is named, and no secret is shown."""
    written(tmp_path, text, URL, PASSWORD)
    settings, origins, notes = loaded(tmp_path, (tmp_path / "placement.conf").read_text())
    assert settings.auth == "keystone"
    assert settings.policy == "new"
    assert settings.keystone_url == URL
    assert settings.keystone_password == PASSWORD
    assert (settings.keystone_username, settings.keystone_project) == ("placement", "service")
    assert settings.keystone_domain_id == "default"
    assert settings.keystone_ca_file is None
    assert settings.keystone_insecure is False
    assert origins["keystone_url"].endswith("[keystone_authtoken] auth_url")
    assert not [note for note in notes if "unknown" in note]
    assert [note for note in notes if "[placement_database] connection" in note]
    assert [note for note in notes if "memcached_servers" in note]
    for secret in (*SECRETS, PASSWORD):
        assert secret not in f"{notes}{origins}"


def test_our_own_sources_count_more(tmp_path: Path) -> None:
    """The file of settings, the environment and options, in this order, and [moorage] before."""
    text = f"{KEYSTONE}[DEFAULT]\ndebug = true\n[moorage]\nqueue_max = 5\nlog_level = info\n"
    found = loaded(tmp_path, text)
    assert (found.settings.queue_max, found.settings.log_level) == (5, "info")
    assert found.origins["queue_max"].endswith("placement.conf [moorage] queue_max")
    (tmp_path / "moorage.toml").write_text("queue_max = 6\nbody_bytes_max = 6\n")
    found = load(
        {"header_count_max": "8"},
        {"MOORAGE_BODY_BYTES_MAX": "7", "MOORAGE_HEADER_COUNT_MAX": "7"},
        str(tmp_path / "moorage.toml"),
        [str(tmp_path / "placement.conf")],
    )
    settings = found.settings
    assert (settings.queue_max, settings.body_bytes_max, settings.header_count_max) == (6, 7, 8)


@pytest.mark.parametrize(
    ("more", "setting", "value"),
    [
        ("[placement]\nmax_allocation_candidates = 700\n", "candidates_max", 700),
        ("[placement]\nmax_allocation_candidates = -1\n", "candidates_max", 100_000),
        ("[oslo_policy]\nenforce_new_defaults = false\n", "policy", "default"),
        ("[oslo_policy]\nenforce_new_defaults = true\n", "policy", "new"),
        ("[cors]\nallowed_origin = https://a.example\n", "cors_origin", "https://a.example"),
        ("[DEFAULT]\nuse_json = true\n", "log_format", "json"),
        ("[DEFAULT]\nauth_strategy = noauth2\n", "auth", "noauth2"),
        ("[api]\nauth_strategy = noauth2\n", "auth", "noauth2"),
        ("token_cache_time = 300\n", "keystone_cache_seconds_max", 60.0),
        ("token_cache_time = -1\n", "keystone_cache_seconds_max", 0.0),
        ("http_connect_timeout = 3\n", "keystone_seconds_max", 3.0),
        ("insecure = true\n", "keystone_insecure", True),
        ("cafile = /etc/ca.pem\n", "keystone_ca_file", "/etc/ca.pem"),
        ("user_domain_name = d\nproject_domain_name = d\n", "keystone_domain", "d"),
        ("auth_section = other\n[other]\npassword = third\n", "keystone_password", "third"),
    ],
)
def test_each_key(tmp_path: Path, more: str, setting: str, value: Any) -> None:
    """Keys and values of the original, and the settings that they become."""
    text = KEYSTONE + more
    if "auth_section" in more:
        text += f"auth_url = {URL}\n"
    found = loaded(tmp_path, text)
    assert getattr(found.settings, setting) == value
    assert found.notes == ()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("[api]\nauth_strategy = kerberos\n", ["auth_strategy", "keystone or noauth2"]),
        ("auth_type = v3applicationcredential\n", ["auth_type", "password"]),
        ("user_domain_id = a\nproject_domain_id = b\n", ["user_domain_id", "project_domain_id"]),
        ("[moorage]\nqueue_macs = 5\n", ["[moorage]", "queue_macs"]),
        ("[moorage]\nqueue_max = many\n", ["[moorage] queue_max", "many"]),
        ("[oslo_policy]\nenforce_new_defaults = maybe\n", ["enforce_new_defaults"]),
        ("[placement]\nmax_allocation_candidates = few\n", ["max_allocation_candidates"]),
    ],
)
def test_errors_name_the_key(tmp_path: Path, more: str, words: list[str]) -> None:
    """What cannot be followed ends the start instead of being ignored."""
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, KEYSTONE + more)
    for word in words:
        assert word in str(raised.value)
    assert PASSWORD not in str(raised.value)


def test_keys_without_an_effect_are_named(tmp_path: Path) -> None:
    """Each with the reason; a misspelt one is unknown."""
    text = f"{KEYSTONE}memcached_servers = x\n[placement]\nrandomise = 1\n[nova]\na = 1\nb = 2\n"
    notes = loaded(tmp_path, text).notes
    file = tmp_path / "placement.conf"
    assert notes == (
        f"{file} [keystone_authtoken] memcached_servers: has no effect: Moorage caches tokens in"
        " its own memory",
        f"{file} [placement] randomise: has no effect: unknown",
        f"{file} [nova] a, b: has no effect: unknown",
    )


def test_a_changed_rule_ends_the_start(tmp_path: Path) -> None:
    """It may permit less than the profiles do. A profile of the operator's own choice counts."""
    (tmp_path / "policy.yaml").write_text(
        '"placement:usages": "role:admin"\n"placement:traits:list": "rule:admin_or_service_api"\n'
    )
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, KEYSTONE)
    assert "cannot follow these rules: placement:usages; remove" in str(raised.value)
    assert loaded(tmp_path, KEYSTONE, MOORAGE_POLICY="new").settings.policy == "new"
    assert loaded(tmp_path, f"{KEYSTONE}[moorage]\npolicy = open\n").settings.policy == "open"
    (tmp_path / "policy.yaml").write_text("{}\n")
    assert loaded(tmp_path, KEYSTONE).settings.policy == "new"


@pytest.mark.parametrize(
    ("rules", "new", "changed"),
    [
        ('{"placement:reshaper:reshape": "rule:service_api"}', True, False),
        ('{"service_api": "role:service"}', True, False),
        ('{"service_api": "role:service"}', False, True),
        ('{"admin_api": "( role:admin )"}', True, False),
        ('{"placement:traits:list": ""}', True, True),
        ('{"placement:traits:list": "@"}', True, True),
        ('{"my_own_rule": "role:operator"}', True, False),
    ],
)
def test_rules(tmp_path: Path, rules: str, new: bool, changed: bool) -> None:
    """A rule that says the default in other words is not changed; JSON is YAML, too."""
    (tmp_path / "policy.d").mkdir()
    (tmp_path / "policy.d" / "rules.json").write_text(rules)
    text = f"{KEYSTONE}[oslo_policy]\nenforce_new_defaults = {new}\n"
    if changed:
        with pytest.raises(ConfigError, match="cannot follow"):
            loaded(tmp_path, text)
    else:
        loaded(tmp_path, text)


def test_shown_by_the_command_line(tmp_path: Path) -> None:
    """The settings with their origins, and notes on standard error; the password is hidden."""
    file = written(tmp_path, KOLLA, URL, PASSWORD)
    done = moorage("config", "show", "--origin", "--placement-conf", str(file), directory=tmp_path)
    assert done.returncode == 0
    assert f"{file} [keystone_authtoken] auth_url" in done.stdout
    assert "[placement_database] connection" in done.stderr
    assert not any(secret in done.stdout + done.stderr for secret in (*SECRETS, PASSWORD))
    by_variable = moorage(
        "config", "show", "--origin", directory=tmp_path, MOORAGE_PLACEMENT_CONF=str(file)
    )
    assert by_variable.stdout == done.stdout
    missing = tmp_path / "missing.conf"
    assert str(missing) in refusal(2, "config", "show", "--placement-conf", str(missing))
