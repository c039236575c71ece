"""`uwsgi FILE.ini`: starts the server where a tool would start uWSGI with Placement in it.

Of the file only the address, the certificate, the user and the log are read. Everything else is
about processes and threads, of which Moorage needs no more than one.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

from moorage.cli.openstack.configuration import database_of, fail, files_by_default, loaded
from moorage.cli.openstack.privileges import become
from moorage.config import ConfigError
from moorage.config.oslo_files import OsloFiles

PROGRAM = "uwsgi"
APPLICATION = "placement.wsgi.api"
SECTION = "uwsgi"
CONFIG_DIR = "OS_PLACEMENT_CONFIG_DIR"
"""The variable of the original with the folder of `placement.conf`."""


class Asked(NamedTuple):
    """What a file of uWSGI asks for."""

    options: list[str]
    """Of `moorage serve`."""
    log: str | None
    """Where to write what the server prints; None: to standard error."""
    user: str | None
    """Who to become before anything is opened; None: nobody else."""


def main() -> None:
    """Replace this process by the server."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__)
    parser.add_argument("--ini", metavar="FILE", dest="named")
    parser.add_argument("file", nargs="?", metavar="FILE")
    given = parser.parse_args()
    file = given.named or given.file
    if file is None:
        parser.error("name a file")
    try:
        asked = options_of(OsloFiles([file]))
    except ConfigError as error:
        fail(PROGRAM, error)
    if asked.user is not None:
        try:
            become(asked.user)
        except KeyError:
            fail(PROGRAM, f"{file} [uwsgi] uid: there is no user {asked.user}")
        except OSError as error:
            fail(PROGRAM, f"{file} [uwsgi] uid: {error.strerror}")
    files = configuration(os.environ)
    database_of(PROGRAM, loaded(PROGRAM, files))
    words = [word for each in files for word in ("--placement-conf", each)]
    if asked.log is not None:
        _write_to(asked.log)
    os.execv(sys.executable, [sys.executable, "-m", "moorage", "serve", *asked.options, *words])


def configuration(environ: Mapping[str, str]) -> list[str]:
    """Return the files that the original reads when uWSGI starts it."""
    folder = environ.get(CONFIG_DIR, "").strip()
    return [os.path.join(folder, "placement.conf")] if folder else files_by_default(PROGRAM)


def options_of(ini: OsloFiles) -> Asked:
    """Return what the file asks for.

    Raises:
        ConfigError: it is for another application, or has no address.
    """
    application = ini.text(SECTION, "module") or ""
    if application.partition(":")[0] != APPLICATION:
        raise ConfigError(
            f"{ini.paths[0]}: this uwsgi starts Moorage in place of {APPLICATION} only, not"
            f" {application or 'nothing'}"
        )
    log = ini.text(SECTION, "logto2") or ini.text(SECTION, "logto")
    user = ini.text(SECTION, "uid")
    for key in ("https", "http", "http-socket"):
        address, *certificate = ini.list(SECTION, key) or [""]
        if address:
            options = ["--listen", address if not address.startswith(":") else f"0.0.0.0{address}"]
            if key == "https":
                if len(certificate) < 2:
                    raise ConfigError(f"{ini.paths[0]} [uwsgi] https: must be ADDRESS,CERT,KEY")
                options += ["--tls-cert", certificate[0], "--tls-key", certificate[1]]
            return Asked(options, log, user)
    raise ConfigError(f"{ini.paths[0]}: [uwsgi] has no http or https with an address")


def _write_to(log: str) -> None:
    try:
        written = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    except OSError as error:
        fail(PROGRAM, f"{log}: cannot be written: {error.strerror}")
    for stream in (1, 2):
        os.dup2(written, stream)
    os.close(written)
