"""How a cluster is reached: as the service account of a pod, or as a kubeconfig file says.

Both are read by kopf.
"""

import json
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

import kopf
import yaml

from moorage.client.transport import server_url, token_of
from moorage.integrations.kubernetes.api import Connection
from moorage.integrations.rereading import FileValue

TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token"
"""The token of a pod's service account; Kubernetes writes a new one from time to time."""

VARIABLE = "KUBECONFIG"


class UnusableError(ValueError):
    """No cluster can be reached like this; the message says what to change."""


def in_cluster() -> Connection:
    """Return the connection of a pod. Raises UnusableError."""
    found = kopf.login_with_service_account(settings=kopf.OperatorSettings())
    if found is None:
        raise UnusableError(
            f"no cluster is set: use --kubeconfig or {VARIABLE}. This is not a pod, because there"
            f" is no {TOKEN_FILE}"
        )
    try:
        token = FileValue(TOKEN_FILE, lambda text: token_of(text, TOKEN_FILE))
        tls = found.as_ssl_context()
    except (OSError, ValueError) as error:
        raise UnusableError(str(error)) from error

    def headers() -> Mapping[str, str]:
        return {"Authorization": f"Bearer {token()}"}

    return Connection(found.server, headers, tls)


def by_kubeconfig(path: str, context: str | None = None) -> Connection:
    """Return the connection of a context of a file, by default its current one.

    Several files are separated as in the variable. Raises UnusableError.
    """
    try:
        found = _login(path, context)
        if found is None or not found.server:
            raise UnusableError(f"{path}: its cluster has no server")
        server = server_url(found.server)
        headers = found.as_http_headers()
        tls = _tls_of(path, found) if server.lower().startswith("https:") else None
    except kopf.LoginError as error:
        raise UnusableError(f"{path}: {error}") from error
    except KeyError as error:
        raise UnusableError(f"{path}: {_missing(error, context)}") from error
    except OSError as error:
        raise UnusableError(f"{path}: {error.strerror or error}") from error
    except (yaml.YAMLError, AttributeError, TypeError, UnicodeDecodeError) as error:
        raise UnusableError(f"{path} is not a kubeconfig file") from error
    except UnusableError:
        raise
    except ValueError as error:
        raise UnusableError(f"{path}: {error}") from error
    if found.proxy_url:
        raise UnusableError(
            f"{path}: proxy-url is not supported: use an address that can be reached without it"
        )
    if not headers and not _has_certificate(found):
        raise UnusableError(
            f"{path}: its user has no token, password or certificate with its key. Neither exec"
            " nor tokenFile is supported: use the token of a service account"
        )
    return Connection(server, lambda: headers, tls)


def _tls_of(path: str, found: kopf.ConnectionInfo) -> ssl.SSLContext:
    """Return how to speak TLS with a cluster. Raises UnusableError, TypeError."""
    for named in (found.ca_path, found.certificate_path, found.private_key_path):
        one = os.fsdecode(named or "")
        if one and not Path(one).is_file():
            raise UnusableError(
                f"{path}: there is no file {one}. A path that is not absolute begins at the"
                " working directory"
            )
    try:
        return found.as_ssl_context()
    except (OSError, ValueError) as error:
        raise UnusableError(
            f"{path}: its authority, certificate or key cannot be used: {error}"
        ) from error


def _has_certificate(found: kopf.ConnectionInfo) -> bool:
    """Return whether a user has a certificate; without its key kopf does not use one."""
    certificate = found.certificate_path or found.certificate_data
    return bool(certificate and (found.private_key_path or found.private_key_data))


def _missing(error: KeyError, context: str | None) -> str:
    """Return what a file does not have."""
    if context is not None and error.args == (context,):
        return f"there is no context '{context}'"
    if error.args == ("",):
        return "it names no context: use --context"
    return f"there is no {error}, which it refers to"


def _login(path: str, context: str | None) -> kopf.ConnectionInfo | None:
    """Read the files as kopf does, which takes their paths from the environment."""
    for one in filter(None, path.split(os.pathsep)):
        if not Path(one).expanduser().is_file():
            raise UnusableError(f"{one}: there is no such file")
    before = os.environ.get(VARIABLE)
    with NamedTemporaryFile("w", suffix=".json") as first:
        # Of several files the first one that names a context decides.
        json.dump({} if context is None else {"current-context": context}, first)
        first.flush()
        os.environ[VARIABLE] = f"{first.name}{os.pathsep}{path}"
        try:
            return kopf.login_with_kubeconfig(settings=kopf.OperatorSettings())
        finally:
            del os.environ[VARIABLE]
            if before is not None:
                os.environ[VARIABLE] = before
