"""`moorage metal3 wait`: returns when new hosts get our pause."""

from typing import Any

import click

from moorage.cli.support.kubernetes import any_cluster_options, any_connection
from moorage.cli.support.options import SecondsRange, example
from moorage.cli.support.output import FAILED, UNREACHABLE, USAGE, Failure, say
from moorage.cli.support.provisioning import carried_out


@click.command(epilog=example("moorage metal3 wait --kubeconfig ~/.kube/config"))
@any_cluster_options
@click.option(
    "--namespace",
    default="default",
    show_default=True,
    metavar="NAME",
    help="Namespace in which a new host is tried.",
)
@click.option(
    "--timeout",
    type=SecondsRange(0, 3600),
    default=60.0,
    metavar="SECONDS",
    help="Seconds to wait; 60 by default.",
)
def wait(namespace: str, timeout: float, **words: Any) -> None:
    """Wait until new hosts are paused.

    An API server needs a moment to learn of the policy or the webhook. This creates a host as a dry
    run, which stores nothing, until it comes back paused. Needs the right to create hosts.
    """
    from moorage.integrations.kubernetes.names import LABEL_TEXT, is_label

    if not is_label(namespace):
        raise Failure(USAGE, f"--namespace must be {LABEL_TEXT}")
    connect = any_connection(words)

    async def work() -> None:
        from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
        from moorage.integrations.metal3.until_paused import NotPausedError, until_paused

        try:
            async with KubernetesApi(connect()) as api:
                await until_paused(api, namespace, timeout)
        except NotPausedError as error:
            raise Failure(FAILED, f"after {timeout:g} s {error}") from None
        except KubernetesError as error:
            raise Failure(UNREACHABLE if error.status is None else FAILED, str(error)) from None
        say("new hosts are paused")

    carried_out(work, "kubernetes")
