"""The options that name a cluster, for the commands that reach one."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from moorage.cli.support.output import USAGE, Failure
from moorage.extras import needs

if TYPE_CHECKING:
    from moorage.integrations.kubernetes.api import Connection


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --kubeconfig and --context, which `connection_of` reads."""
    command = click.option(
        "--context", metavar="NAME", help="A context of --kubeconfig; by default its current one."
    )(command)
    return click.option(
        "--kubeconfig",
        type=click.Path(),
        metavar="FILE",
        help="The cluster; by default KUBECONFIG, or that of this pod.",
    )(command)


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
