"""A real Keystone as a process; it runs in the environment that has it (`.venv-moving`).

    python -m tests.moving.support.keystone_serving FOLDER CERTIFICATE

FOLDER has its `keystone.conf`, the folder CERTIFICATE a certificate and its key. It prints one line
with the URL and serves until a signal arrives.
"""

import os
import sys

from tests.moving.support.serving import Quiet, Server


def main(folder: str, certificate: str) -> None:
    """Serve on a free port of 127.0.0.1."""
    os.environ["OS_KEYSTONE_CONFIG_DIR"] = folder
    sys.argv = sys.argv[:1]  # Keystone reads it, too
    from keystone.server import wsgi

    application = wsgi.initialize_public_application()
    with Server(("127.0.0.1", 0), Quiet) as server:
        server.set_app(application)
        server.encrypt(certificate)
        server.announce("keystone")
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
