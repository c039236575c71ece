"""`moorage metal3 uninstall`: removes what pauses hosts, then every pause of ours."""

import ssl
from collections.abc import Callable, Mapping

import click

from moorage.cli.support.options import example
from moorage.cli.support.output import FAILED, UNREACHABLE, USAGE, Failure, say
from moorage.cli.support.provisioning import carried_out, fault_text, moorage_url
from moorage.client.transport import token_of


@click.command(
    epilog=example(
        "moorage metal3 uninstall --kubernetes http://127.0.0.1:8001 --dry-run",
    )
)
@click.option(
    "--kubernetes",
    required=True,
    metavar="URL",
    help="Address of the API server, or of kubectl proxy, which has your rights.",
)
@click.option(
    "--kubernetes-token-file", type=click.Path(), metavar="FILE", help="File with a token for it."
)
@click.option("--ca-file", type=click.Path(), metavar="FILE", help="Authorities to trust for it.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed.")
def uninstall(
    kubernetes: str, kubernetes_token_file: str | None, ca_file: str | None, dry_run: bool
) -> None:
    """Remove the policy or the webhook, then our pause from every host.

    Other pauses stay. Stop the governor first: it may pause a host again. Needs the rights to
    delete the policy and to patch hosts.
    """
    server = moorage_url(kubernetes)
    try:
        headers = _headers(kubernetes_token_file)
        trusted = None if ca_file is None else ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:
        raise Failure(USAGE, fault_text(error)) from None

    async def work() -> None:
        from moorage.integrations.kubernetes.api import (
            Connection,
            KubernetesApi,
            KubernetesError,
        )
        from moorage.integrations.metal3.uninstall import UninstallError
        from moorage.integrations.metal3.uninstall import uninstall as remove

        try:
            async with KubernetesApi(Connection(server, headers, trusted)) as api:
                removed = await remove(api, dry_run=dry_run)
        except UninstallError as error:
            raise Failure(FAILED, str(error)) from None
        except KubernetesError as error:
            raise Failure(UNREACHABLE if error.status is None else FAILED, str(error)) from None
        verb = "would remove" if dry_run else "removed"
        say(f"{verb}: {removed.documents} admission objects, {removed.pauses} pauses of hosts")

    carried_out(work, "kubernetes")


def _headers(path: str | None) -> Callable[[], Mapping[str, str]]:
    """Return what gives the credentials. Raises OSError, ValueError."""
    if path is None:
        return dict
    from moorage.integrations.rereading import FileValue

    token = FileValue(path, lambda text: token_of(text, path))
    return lambda: {"Authorization": f"Bearer {token()}"}
