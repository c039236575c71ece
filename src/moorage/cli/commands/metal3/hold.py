"""`moorage metal3 hold` and `resume`: hosts keep their place in line, and are not started."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.kubernetes import any_cluster_options, any_connection
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import FAILED, UNREACHABLE, USAGE, Failure, say, show_json
from moorage.cli.support.provisioning import carried_out

if TYPE_CHECKING:
    from moorage.integrations.kubernetes.api import KubernetesApi
    from moorage.integrations.metal3.holding import Changed

REASON_LENGTH_MAX = 200
"""Characters of a reason."""


@click.command(
    epilog=example("moorage metal3 hold metal3 --cluster edge-1 --reason 'moves to the new site'")
)
@click.argument("namespace")
@click.option("--cluster", metavar="NAME", help="Only the hosts of this Cluster of Cluster API.")
@click.option("--reason", default="", metavar="TEXT", help="Reason, shown with the hosts.")
@any_cluster_options
@json_option
def hold(namespace: str, cluster: str | None, reason: str, **words: Any) -> None:
    """Hold back the waiting hosts of a namespace.

    The namespace and its hosts get an annotation, so hosts that are created later are held, too.
    With --cluster only hosts get it. Working hosts continue.
    """
    if len(reason) > REASON_LENGTH_MAX or not reason.isprintable():
        raise Failure(USAGE, f"--reason must have at most {REASON_LENGTH_MAX} printable characters")

    async def change(api: "KubernetesApi") -> "Changed":
        from moorage.integrations.metal3 import holding

        return await holding.hold(api, namespace, cluster, reason)

    _carry_out("held", namespace, cluster, change, words)


@click.command(epilog=example("moorage metal3 resume metal3 --cluster edge-1"))
@click.argument("namespace")
@click.option("--cluster", metavar="NAME", help="Only the hosts of this Cluster of Cluster API.")
@any_cluster_options
@json_option
def resume(namespace: str, cluster: str | None, **words: Any) -> None:
    """Let hosts start again after `moorage metal3 hold`."""

    async def change(api: "KubernetesApi") -> "Changed":
        from moorage.integrations.metal3 import holding

        return await holding.resume(api, namespace, cluster)

    _carry_out("resumed", namespace, cluster, change, words)


def _carry_out(
    said: str,
    namespace: str,
    cluster: str | None,
    change: "Callable[[KubernetesApi], Awaitable[Changed]]",
    words: dict[str, Any],
) -> None:
    """Change the hosts, and say how many. Raises Failure."""
    from moorage.integrations.kubernetes.names import LABEL_TEXT, is_label

    for name, given in (("NAMESPACE", namespace), ("--cluster", cluster)):
        if given is not None and not is_label(given):
            raise Failure(USAGE, f"{name} must be {LABEL_TEXT}")
    connect = any_connection(words)

    async def work() -> None:
        from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
        from moorage.integrations.metal3.holding import HoldError

        try:
            async with KubernetesApi(connect()) as api:
                found = await change(api)
        except HoldError as error:
            raise Failure(FAILED, str(error)) from None
        except KubernetesError as error:
            raise Failure(UNREACHABLE if error.status is None else FAILED, str(error)) from None
        if words["as_json"]:
            show_json({"changed": found.changed, "hosts": found.hosts})
        else:
            say(f"{said}: {found.changed} of {found.hosts} hosts")

    carried_out(work, "kubernetes")
