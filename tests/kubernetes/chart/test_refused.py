"""Values that the chart refuses, and what it says."""

import re
from typing import Any

import pytest
import yaml

from tests.kubernetes.chart.helm import CHART, Helm, Refused
from tests.kubernetes.chart.sets import IMAGE, PEER, RULES

CHARTED = yaml.safe_load((CHART / "files/charted.yaml").read_text())


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster."""
    return Helm(tmp_path_factory.mktemp("helm"))


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return values with one more, by its path."""
    made: Any = value
    for name in reversed(path.split(".")):
        made = {name: made}
    found: dict[str, Any] = made
    return found


GOVERNED = {"governor": {"enabled": True, "pool": "deploy"}}
POSTGRESQL = {"database": {"engine": "postgresql"}}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a misspelt value": (changed("server.replica", 2), "additional properties 'replica' not allow"),
    "at the root": (changed("servers", {}), "additional properties 'servers' not allowed"),
    "in a list of settings": (
        changed("server.settings", {"log_leval": "info"}),
        "additional properties 'log_leval' not allowed",
    ),
    **{
        f"the setting {name}": (
            changed("server.settings", {name: "x"}),
            f"server.settings.{name}: is not for the chart: {instead}",
        )
        for name, instead in CHARTED.items()
    },
    "a setting's value": (changed("server.settings", {"log_level": "loud"}), "must be one of"),
    "a setting's bound": (changed("server.settings", {"queue_max": 0}), "minimum"),
    "a setting's type": (changed("server.settings", {"access_log": "no"}), "want boolean"),
    "a text for a number": (changed("server.replicas", "two"), "got string, want integer"),
    "an engine": (changed("server.database.engine", "mysql"), "must be one of"),
    "a size": (changed("server.database.sqlite.size", "ten"), "does not match pattern"),
    "a port": (changed("server.service.port", 70_000), "maximum"),
    "a Secret's name": (changed("server.tls.secret", "My_Secret"), "does not match pattern"),
    "a digest": (changed("image.digest", "latest"), "does not match pattern"),
    "a host": (changed("server.allowedHosts", ["a b"]), "does not match pattern"),
    "a pool": (
        {"governor": {"enabled": True, "pool": 'a"\nb: c'}},
        "does not match pattern",
    ),
    "a password in the address": (
        changed("server.database.postgresql.address", "postgresql://moorage:secret@db/moorage"),
        "must not contain a password; put it into a Secret",
    ),
    "a slash in it": (
        changed("server.database.postgresql.address", "postgresql://moorage:s/cret@db/moorage"),
        "must not contain a password; put it into a Secret",
    ),
    "half an address": (
        changed("server.database.postgresql.address", "db.example/moorage"),
        "must be an address such as postgresql://USER@HOST/NAME",
    ),
    "an address for SQLite": (
        changed("server.database.postgresql.address", "postgresql://db.example/moorage"),
        "server.database.postgresql.address: needs server.database.engine=postgresql",
    ),
    "a Secret's address for SQLite": (
        changed("server.database.postgresql.addressSecret.name", "db"),
        "server.database.postgresql.addressSecret: needs server.database.engine=postgresql",
    ),
    "a password for SQLite": (
        changed("server.database.postgresql.passwordSecret.name", "db"),
        "server.database.postgresql.passwordSecret: needs server.database.engine=postgresql",
    ),
    "certificates for SQLite": (
        changed("server.database.postgresql.authority.configMap", "site"),
        "server.database.postgresql.authority: needs server.database.engine=postgresql",
    ),
    "peers for SQLite": (
        {"networkPolicy": {"enabled": True, "postgresql": [PEER]}},
        "networkPolicy.postgresql: needs server.database.engine=postgresql",
    ),
    "a volume for PostgreSQL": (
        {
            "server": {
                "database": {
                    "engine": "postgresql",
                    "sqlite": {"existingClaim": "mine"},
                    "postgresql": {"address": "postgresql://db/moorage"},
                }
            }
        },
        "server.database.sqlite.existingClaim: needs server.database.engine=sqlite",
    ),
    "a volume for no backups": (
        changed("server.backup.existingClaim", "mine"),
        "server.backup.existingClaim: needs server.backup.enabled",
    ),
    "a password for no Keystone": (
        changed("server.keystonePasswordSecret.name", "mine"),
        "server.keystonePasswordSecret.name: needs auth: keystone in server.settings",
    ),
    "peers for no Keystone": (
        {"networkPolicy": {"enabled": True, "keystone": [PEER]}},
        "networkPolicy.keystone: needs auth: keystone in server.settings",
    ),
    "everybody as an administrator": (
        changed("server.settings", {"auth": "noauth2"}),
        "noauth2 lets anyone in; if you want this, also set insecure_noauth2 in server.settings",
    ),
    "passwords and everybody": (
        {"boskos": {"enabled": True, "insecure": True, "passwordSecret": {"name": "p"}}},
        "boskos: set only one of passwordSecret.name and insecure",
    ),
    "both addresses": (
        {
            "server": {
                "database": {
                    "engine": "postgresql",
                    "postgresql": {
                        "address": "postgresql://db/moorage",
                        "addressSecret": {"name": "db"},
                    },
                }
            }
        },
        "set only one of address and addressSecret.name",
    ),
    "a password behind the address": (
        {
            "server": {
                "database": {
                    "engine": "postgresql",
                    "postgresql": {"address": "postgresql://db/moorage?password=secret"},
                }
            }
        },
        "must not contain a password",
    ),
    "no image": ({"image": {"repository": ""}}, "image.repository is not set"),
    "nothing": (changed("server.enabled", False), "nothing is to be installed"),
    "two processes on SQLite": (changed("server.replicas", 2), "only one process can use a SQLite"),
    "no address": ({"server": POSTGRESQL}, "set address or addressSecret.name"),
    "a backup of PostgreSQL": (
        {"server": {**POSTGRESQL, "backup": {"enabled": True}}},
        "is only for SQLite",
    ),
    "Keystone alone": (
        changed("server.settings", {"auth": "keystone"}),
        "keystone needs keystone_url",
    ),
    "Boskos for everybody": (changed("boskos.enabled", True), "set passwordSecret.name"),
    "Boskos without a server": (
        {"server": {"enabled": False}, "boskos": {"enabled": True}, **GOVERNED},
        "boskos: needs server.enabled",
    ),
    "a governor without a server": (
        {"server": {"enabled": False}, **GOVERNED},
        "governor: set moorageUrl",
    ),
    "a governor without a limit": (
        changed("governor.enabled", True),
        "governor: set pool or rules",
    ),
    "a governor with two": (
        {"governor": {"enabled": True, "pool": "deploy", "rules": RULES}},
        "governor: set only one of pool and rules",
    ),
    "a gate without Ironic": (
        {"gate": {"enabled": True, "pool": "deploy", "tokenSecret": {"name": "t"}}},
        "gate.ironicUrl: set",
    ),
    "a gate without a token": (
        {"gate": {"enabled": True, "pool": "deploy", "ironicUrl": "http://ironic"}},
        "gate.tokenSecret.name: name a Secret",
    ),
    "an Ingress without hosts": (changed("ingress.enabled", True), "name at least one host"),
    "a route without hosts": (changed("httpRoute.enabled", True), "httpRoute: set hostnames"),
    "a path that the server does not know": (
        {"ingress": {"enabled": True, "hosts": ["a.example"], "path": "/placement"}},
        "ingress.path: set path_prefix in server.settings to the same path",
    ),
    "another path": (
        {
            "httpRoute": {
                "enabled": True,
                "hostnames": ["a.example"],
                "parentRefs": [{"name": "shared"}],
                "path": "/placement",
            },
            "server": {"settings": {"path_prefix": "/other"}},
        },
        "httpRoute.path: set path_prefix in server.settings to the same path",
    ),
    "the governor's name": (
        {"fullnameOverride": "moorage-governor", **GOVERNED},
        "must not begin with moorage-governor",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_refused(helm: Helm, case: str) -> None:
    """Helm says what is wrong, and makes nothing."""
    values, said = WRONG[case]
    with pytest.raises(Refused, match=re.escape(said)):
        helm.template({"image": IMAGE, **values})


def test_a_refused_password_is_not_shown(helm: Helm) -> None:
    """Nor is an address without one, because it may be a wrong place for one."""
    for address in ("postgresql://moorage:hunter2@db/moorage", "moorage hunter2 db"):
        with pytest.raises(Refused) as refused:
            helm.template(
                {"image": IMAGE, **changed("server.database.postgresql.address", address)}
            )
        assert "server.database.postgresql.address: must" in str(refused.value)
        assert "hunter2" not in str(refused.value)


def test_noauth2_is_permitted_on_purpose(helm: Helm) -> None:
    """This is the control of the refusal."""
    settings = {"auth": "noauth2", "insecure_noauth2": True}
    assert helm.template({"image": IMAGE, **changed("server.settings", settings)})


def test_all_contradictions_are_said_at_once(helm: Helm) -> None:
    """A user who corrects one mistake does not find the next one afterwards."""
    values = {"image": IMAGE, "gate": {"enabled": True}, "ingress": {"enabled": True}}
    with pytest.raises(Refused) as refused:
        helm.template(values)
    for said in (
        "ingress.hosts:",
        "gate: set pool or rules",
        "gate.tokenSecret",
        "gate.ironicUrl:",
    ):
        assert said in str(refused.value)
