"""`moorage metal3 install`: prints what limits metal3 in a cluster."""

from pathlib import Path

import click

from moorage.cli.support.kubernetes import connection_of
from moorage.cli.support.options import example
from moorage.cli.support.output import FAILED, UNREACHABLE, USAGE, Failure, say
from moorage.cli.support.provisioning import carried_out, moorage_url, rules_of


@click.command(
    epilog=example(
        "moorage metal3 install --print --image registry.example/moorage:1.0 --pool deploy"
        " --url https://moorage.example"
    )
)
@click.option("--print", "printing", is_flag=True, help="Print the manifests as YAML.")
@click.option("--image", required=True, metavar="IMAGE", help="Container image with Moorage.")
@click.option("--pool", metavar="NAME", help="Pool of which each busy host needs one unit.")
@click.option(
    "--rules",
    type=click.Path(),
    metavar="FILE",
    help="File with rules that choose the pools, instead of --pool.",
)
@click.option("--url", required=True, metavar="URL", help="Moorage's address, for the governor.")
@click.option(
    "--namespace",
    default="moorage",
    show_default=True,
    metavar="NAME",
    help="Namespace to install into.",
)
@click.option(
    "--admission",
    type=click.Choice(["policy", "policy-v1beta1", "webhook"]),
    default="policy",
    show_default=True,
    help="What adds the pause: a policy (Kubernetes 1.36 and later), its older form (1.34 and"
    " 1.35), or a webhook.",
)
@click.option(
    "--gate",
    is_flag=True,
    help="A gate before Ironic limits hosts, too: ignore errors of the policy or the webhook.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(),
    metavar="FILE",
    help="Read this cluster, and warn if metal3's operator has a limit of its own.",
)
@click.option("--context", metavar="NAME", help="Context of --kubeconfig.")
def install(
    printing: bool,
    image: str,
    pool: str | None,
    rules: str | None,
    url: str,
    namespace: str,
    admission: str,
    gate: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Print the manifests: governor, rights, rules, and the admission that pauses hosts.

    It changes nothing in the cluster: read the manifests, then apply them with kubectl.
    """
    from moorage.integrations.metal3.install import (
        AdmissionMethod,
        Installation,
        InstallError,
        documents,
    )
    from moorage.integrations.metal3.rules import Rules, parse
    from moorage.integrations.provisioning.rules import bytes_of, parsed

    if not printing:
        raise Failure(USAGE, "use --print, and apply the manifests with kubectl apply -f -")
    content = b""

    def read(path: Path) -> Rules:
        """Read the file once: it may be a pipe."""
        nonlocal content
        content = bytes_of(path)
        return parsed(path, content, parse)

    rules_of(pool, rules, Rules.of_pool, read)  # refuses what the governor would refuse
    wanted = Installation(
        image=image,
        pool=pool,
        rules=content.decode("utf-8") if rules else None,
        url=moorage_url(url),
        namespace=namespace,
        admission=AdmissionMethod(admission),
        gated=gate,
    )
    try:
        lines = documents(wanted).splitlines()
    except InstallError as error:
        raise Failure(USAGE, str(error)) from None
    if kubeconfig is not None:
        _warn_of_limits(kubeconfig, context)
    elif context is not None:
        raise Failure(USAGE, "--context needs --kubeconfig")
    for line in lines:
        say(*line.split("\t"))  # a tab of the rules stays one


def _warn_of_limits(kubeconfig: str, context: str | None) -> None:
    """Say which limit metal3's operator has of its own. Raises Failure."""

    async def work() -> None:
        from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
        from moorage.integrations.metal3.operator_limit import DEFAULT, operator_limits

        try:
            async with KubernetesApi(connection_of(kubeconfig, context)) as api:
                limits = await operator_limits(api)
        except KubernetesError as error:
            raise Failure(UNREACHABLE if error.status is None else FAILED, str(error)) from None
        if not limits:
            say("warning: this cluster has no Deployment of metal3's operator", err=True)
        for one in limits:
            how = "" if one.is_set else f", its default of {DEFAULT}"
            say(
                f"warning: {one.deployment} has PROVISIONING_LIMIT={one.limit}{how}: it starts no"
                f" more hosts than this at once, whatever the limits of your pools are; raise it"
                f" above these limits (hosts with virtual media are not counted)",
                err=True,
            )

    carried_out(work, "kubernetes")
