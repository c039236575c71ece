"""The original, openstack-placement, as a process: several threads, `noauth2`, on any database.

It runs in the environment that has the original (`.venv-moving`) and needs nothing else of this
project:

    python tests/moving/support/serving.py sync FOLDER [REVISION]
    python tests/moving/support/serving.py serve FOLDER

FOLDER has its `placement.conf`. `sync` makes the newest schema, or that of an older release.
`serve` prints one line with the URL and serves until a signal arrives.
"""

import os
import sys
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer


class Server(ThreadingMixIn, WSGIServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 128


class Quiet(WSGIRequestHandler):
    """Makes an absent content type empty, as uwsgi does; logs nothing."""

    def get_environ(self) -> dict[str, Any]:
        """See wsgiref."""
        environ: dict[str, Any] = super().get_environ()
        environ["CONTENT_TYPE"] = self.headers.get("content-type") or ""
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


def main(what: str, folder: str, revision: str = "") -> None:
    """Make the schema, or serve on a free port of 127.0.0.1."""
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = folder
    if revision:
        migrate(folder, revision)
        return
    if what == "sync":
        from placement.cmd import manage

        sys.argv = ["placement-manage", "--config-dir", folder, "db", "sync"]
        sys.exit(manage.main())
    from placement import wsgi

    application = wsgi.init_application()
    with Server(("127.0.0.1", 0), Quiet) as server:
        server.set_app(application)
        sys.stdout.write(f"original: serving http://127.0.0.1:{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
