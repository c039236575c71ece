"""`moorage metal3 webhook`: pauses hosts in the write that lets them start."""

from pathlib import Path

import click

from moorage.cli.support.options import example
from moorage.cli.support.output import USAGE, Failure, say
from moorage.cli.support.provisioning import carried_out, stop_event


@click.command(
    epilog=example(
        "moorage metal3 webhook --tls-cert tls.crt --tls-key tls.key"
        " --governor system:serviceaccount:moorage:moorage"
    )
)
@click.option(
    "--listen",
    default="127.0.0.1:8443",
    show_default=True,
    metavar="HOST:PORT",
    help="HOST:PORT to listen on for the API server.",
)
@click.option(
    "--tls-cert",
    type=click.Path(),
    required=True,
    metavar="FILE",
    help="Certificate (PEM) to serve HTTPS with.",
)
@click.option(
    "--tls-key",
    type=click.Path(),
    required=True,
    metavar="FILE",
    help="Private key (PEM) of the certificate.",
)
@click.option(
    "--governor",
    default="system:serviceaccount:moorage:moorage",
    show_default=True,
    metavar="USER",
    help="User name of the governor, whose writes are not changed.",
)
def webhook(listen: str, tls_cert: str, tls_key: str, governor: str) -> None:
    """Answer Kubernetes' reviews of writes: pause a host that can start now.

    For clusters without MutatingAdmissionPolicy. Both files are read again when they have changed.
    Runs until Ctrl-C or SIGTERM.
    """

    async def work() -> None:
        from moorage.integrations.metal3.admission_webhook import webhook_served
        from moorage.integrations.pem_files import PemError
        from moorage.integrations.sockets import ListenError, bound

        stop = stop_event()
        try:
            sockets = bound(listen)
            async with webhook_served(governor, Path(tls_cert), Path(tls_key), sockets):
                host, port = sockets[0].getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                say(f"moorage: answering reviews on https://{shown}:{port}/pause")
                await stop.wait()
        except (ListenError, PemError) as error:
            raise Failure(USAGE, str(error)) from None

    carried_out(work, "kubernetes")
