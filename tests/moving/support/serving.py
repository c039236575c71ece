"""The original, openstack-placement, as a process: several threads, `noauth2`, on any database.

It runs in the environment that has the original (`.venv-moving`) and needs nothing else of this
project:

    python tests/moving/support/serving.py sync FOLDER [REVISION]
    python tests/moving/support/serving.py serve FOLDER [CERTIFICATE]

FOLDER has its `placement.conf`, the folder CERTIFICATE a certificate and its key. `sync` makes the
newest schema, or that of an older release. `serve` prints one line with the URL and serves until a
signal arrives.
"""

import os
import ssl
import sys
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer


class Server(ThreadingMixIn, WSGIServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 128
    scheme = "http"

    def encrypt(self, folder: str) -> None:
        """Serve HTTPS with `cert.pem` and `key.pem` of a folder."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.scheme = "https"

    def announce(self, name: str) -> None:
        """Print the address."""
        sys.stdout.write(f"{name}: serving {self.scheme}://127.0.0.1:{self.server_port}\n")
        sys.stdout.flush()


class Quiet(WSGIRequestHandler):
    """Makes an absent content type empty, as uwsgi does; logs nothing."""

    def get_environ(self) -> dict[str, Any]:
        """See wsgiref."""
        environ: dict[str, Any] = super().get_environ()
        environ["CONTENT_TYPE"] = self.headers.get("content-type") or ""
        environ["HTTPS"] = "on" if isinstance(self.connection, ssl.SSLSocket) else "off"
        return environ

    def log_message(self, format: str, *args: Any) -> None:
        """Drop it."""


def migrate(folder: str, revision: str) -> None:
    """Make the schema of an older release: its migrations are among those of this one."""
    from oslo_config import cfg
    from placement import conf, db_api
    from placement.db.sqlalchemy import migration

    config = cfg.ConfigOpts()
    conf.register_opts(config)
    config([], project="placement", default_config_dirs=[folder])
    db_api.configure(config)
    migration.upgrade(revision)


def main(what: str, folder: str, more: str = "") -> None:
    """Make the schema, or serve on a free port of 127.0.0.1.

    `more`: a revision of the schema, or a folder with a certificate.
    """
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = folder
    if what == "sync" and more:
        migrate(folder, more)
        return
    if what == "sync":
        from placement.cmd import manage

        sys.argv = ["placement-manage", "--config-dir", folder, "db", "sync"]
        sys.exit(manage.main())
    from placement import wsgi

    application = wsgi.init_application()
    with Server(("127.0.0.1", 0), Quiet) as server:
        server.set_app(application)
        if more:
            server.encrypt(more)
        server.announce("original")
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
