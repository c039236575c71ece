"""The options that name a cluster, for the commands that reach one."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.output import USAGE, Failure
from moorage.cli.support.provisioning import FILE, fault_text, moorage_url, token_in, with_options
from moorage.extras import needs

if TYPE_CHECKING:
    from moorage.integrations.kubernetes.api import Connection

_CLUSTER = (
    click.option(
        "--kubeconfig",
        **FILE,
        help="File that names the cluster; by default KUBECONFIG, or the cluster of this pod.",
    ),
    click.option(
        "--context", metavar="NAME", help="Context of --kubeconfig; by default its current context."
    ),
)
_ANY_CLUSTER = (
    *_CLUSTER,
    click.option(
        "--kubernetes",
        metavar="URL",
        help="Instead of --kubeconfig: address of the API server, or of kubectl proxy, which has"
        " your rights.",
    ),
    click.option("--kubernetes-token-file", **FILE, help="File with a token for --kubernetes."),
    click.option(
        "--ca-file", **FILE, help="Certificates (PEM) of authorities to trust for --kubernetes."
    ),
)


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --kubeconfig and --context, which `connection_of` reads."""
    return with_options(_CLUSTER, command)


def connection_of(kubeconfig: str | None, context: str | None) -> "Connection":
    """Return how the cluster is reached. Raises Failure."""
    try:
        from moorage.integrations.kubernetes.connection import (
            VARIABLE,
            UnusableError,
            by_kubeconfig,
            in_cluster,
        )
    except ImportError as error:
        raise Failure(USAGE, f"this command {needs('kubernetes', error)}") from None
    path = kubeconfig or os.environ.get(VARIABLE)
    if context is not None and not path:
        raise Failure(USAGE, f"--context needs --kubeconfig, or {VARIABLE}")
    try:
        return by_kubeconfig(path, context) if path else in_cluster()
    except UnusableError as error:
        raise Failure(USAGE, str(error)) from None


def any_cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `any_connection` reads."""
    return with_options(_ANY_CLUSTER, command)


def any_connection(words: Mapping[str, Any]) -> "Callable[[], Connection]":
    """Return what returns how the cluster is reached; both raise Failure."""
    url, token_file, ca_file = (
        words[name] for name in ("kubernetes", "kubernetes_token_file", "ca_file")
    )
    if url is not None and (words["kubeconfig"] or words["context"]):
        raise Failure(USAGE, "give either --kubernetes, or --kubeconfig and --context")
    if url is None and (token_file or ca_file):
        raise Failure(USAGE, "--kubernetes-token-file and --ca-file need --kubernetes")
    if url is None:
        return lambda: connection_of(words["kubeconfig"], words["context"])
    return lambda: _connection(url, token_file, ca_file)


def _connection(url: str, token_file: str | None, ca_file: str | None) -> "Connection":
    """Return the connection to an address. Raises Failure."""
    from moorage.integrations.kubernetes.api import Connection
    from moorage.integrations.pem_files import trusting

    server = moorage_url(url)
    try:
        headers = _headers(token_file)
        trusted = None if ca_file is None else trusting(ca_file)
    except (OSError, ValueError) as error:
        raise Failure(USAGE, fault_text(error)) from None
    return Connection(server, headers, trusted)


def _headers(path: str | None) -> Callable[[], Mapping[str, str]]:
    """Return what gives the credentials. Raises OSError, ValueError."""
    if path is None:
        return dict
    token = token_in(path)
    return lambda: {"Authorization": f"Bearer {token()}"}
