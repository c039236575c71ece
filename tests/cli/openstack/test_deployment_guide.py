"""The guide for kolla-ansible and openstack-ansible: its configurations, and a container's life.

The files are those that the roles write: `tests/config/files.py`, and uWSGI's below.
"""

import configparser
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from moorage.config.settings import load
from tests.config.files import KOLLA, OPENSTACK_ANSIBLE, written
from tests.e2e.support.server import Server
from tests.faces.auth.keystone_server import PASSWORD, serve_keystone
from tests.support.installing import build

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs/howto/kolla-and-openstack-ansible.md").read_text()
PROGRAMS = {"placement-manage": "manage", "placement-status": "status", "uwsgi": "uwsgi"}

UWSGI = """[uwsgi]
add-header = Connection: close
buffer-size = 65535
die-on-term = true
enable-threads = true
exit-on-reload = false
hook-master-start = unix_signal:15 gracefully_kill_them_all
http = {address}
http-auto-chunked = true
http-chunked-input = true
http-raw-body = true
lazy-apps = true
logto2 = {log}
master = true
module = placement.wsgi.api:application
plugins-dir = /usr/lib/uwsgi/plugins
plugins = python3
processes = 5
socket-timeout = 30
thunder-lock = true
uid = {user}
worker-reload-mercy = 80
static-map = /static=/var/lib/kolla/venv/lib/python3/site-packages/static
"""
"""What kolla-ansible's role `service-uwsgi-config` writes."""

BOOTSTRAP = "placement-manage db sync && placement-manage db online_data_migrations"
"""What the container does with KOLLA_BOOTSTRAP."""

KOLLA_VARIABLES = {"placement_api_image_full", "placement_api_extra_volumes"}
ROLE_VARIABLES = {
    "placement_git_constraints",
    "placement_pip_packages",
    "placement_placement_conf_overrides",
    "placement_services",
}
"""Variables of the roles that the guide uses: `defaults/main.yml` of both have these names."""


def blocks(language: str) -> list[str]:
    """Return the blocks of the guide in a language."""
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.S)


def free_address() -> str:
    """Return an address of this machine on which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def probed(address: str) -> bytes:
    """Return the answer to the probe of HAProxy's `option httpchk GET /`, which names no host."""
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return connection.recv(1 << 16)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a PATH with the programs, as pip makes them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, module in PROGRAMS.items():
        script = folder / name
        script.write_text(
            f"#!{sys.executable}\nfrom moorage.cli.openstack.{module} import main\nmain()\n"
        )
        script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_a_container_of_kolla(tmp_path: Path, path: str) -> None:
    """It is bootstrapped, serves, is checked, is bootstrapped again while it runs, and upgraded."""
    (own,) = blocks("ini")
    own = own.replace("/var/lib/moorage", str(tmp_path))
    user = pwd.getpwuid(os.geteuid()).pw_name
    log, address = tmp_path / "placement-api-uwsgi.log", free_address()
    (tmp_path / "uwsgi.ini").write_text(UWSGI.format(address=address, log=log, user=user))
    with serve_keystone() as keystone:
        written(tmp_path, KOLLA, keystone.url.removesuffix("/v3"), PASSWORD, own)
        environment = {
            "PATH": path,
            "HOME": str(tmp_path),
            "OS_PLACEMENT_CONFIG_DIR": str(tmp_path),
        }

        def bootstrap() -> str:
            done = subprocess.run(
                ["sh", "-c", BOOTSTRAP],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert bootstrap().endswith("-+\n")
        assert (tmp_path / "moorage.sqlite").exists()
        for _ in range(2):
            ready = re.compile(r"nothing is printed but this: (?P<url>\S+)")
            shell = (
                'uwsgi "$0" & trap "kill $!" TERM;'
                ' until grep -q "moorage: serving" "$1"; do sleep 0.1; done;'
                f" echo nothing is printed but this: http://{address}; wait"
            )
            log.write_text("")
            command = ["sh", "-c", shell, str(tmp_path / "uwsgi.ini"), str(log)]
            with Server(command, environment, ready=ready) as server:
                with urlopen(f"http://{address}/") as answer:
                    assert answer.status == 200
                assert probed(address).startswith(b"HTTP/1.1 200 ")
                assert "[placement_database]" in log.read_text()
                assert len(server.said) == 1
                bootstrap()


def test_configuration_of_openstack_ansible(tmp_path: Path) -> None:
    """The overrides are settings; `{{ }}` are variables of the role."""
    kolla, ansible = map(yaml.safe_load, blocks("yaml"))
    assert set(kolla) == KOLLA_VARIABLES
    assert set(ansible) == ROLE_VARIABLES
    own = ansible["placement_placement_conf_overrides"]["moorage"]
    more = (
        "".join(f"{key} = {value}\n" for key, value in own.items())
        .replace("{{ ", "")
        .replace(" }}", "")
    )
    file = written(
        tmp_path, OPENSTACK_ANSIBLE, "http://192.0.2.1:5000", "x", f"\n[moorage]\n{more}"
    )
    settings = load({}, {}, None, [str(file)]).settings
    assert settings.database.startswith("postgresql://moorage:")
    assert settings.allowed_hosts == ("cloud.example", "internal.cloud.example")
    assert settings.trusted_proxies == ("192.0.2.0/24",)
    service = ansible["placement_services"]["placement-api"]
    assert "--placement-conf /etc/placement/placement.conf" in service["execstarts"]


def test_programs_of_the_distribution(tmp_path: Path) -> None:
    """It has the three programs, and Moorage's own has none of them."""
    programs = ROOT / "contrib/openstack"
    shutil.copytree(programs, tmp_path / "sources")
    for project in (tmp_path / "sources", ROOT):
        build("wheel", project, tmp_path)
    found = {}
    for wheel in tmp_path.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (one for one in archive.namelist() if one.endswith("/entry_points.txt"))
            scripts = configparser.ConfigParser()
            scripts.read_string(archive.read(name).decode())
            found[wheel.name.partition("-")[0]] = dict(scripts["console_scripts"])
    assert found == {
        "moorage": {"moorage": "moorage.__main__:main"},
        "moorage_placement_programs": {
            name: f"moorage.cli.openstack.{module}:main" for name, module in PROGRAMS.items()
        },
    }
