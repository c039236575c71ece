"""`moorage export boskos`: prints slots as Boskos' custom resources."""

import click

from moorage.cli.support.command import administering, at_server
from moorage.cli.support.options import example
from moorage.cli.support.output import show_json
from moorage.client.admission import Admission
from moorage.client.boskos import Boskos


@click.command(
    epilog=example(
        "moorage export boskos --namespace test-pods",
    )
)
@administering
@click.option("--namespace", metavar="NAME", help="Of Boskos; by default the objects name none.")
def boskos(namespace: str | None) -> None:
    """Print the slots of pools as Boskos' custom resources, for kubectl.

    Boskos makes its dynamic types from its own configuration. Leases of the native API and of the
    lease proxy become owners as well: their holders must release them in Boskos.
    """
    from moorage.integrations.boskos.objects import object_of, types_of

    with at_server(Admission) as admission, at_server(Boskos) as server:
        items = [
            object_of(kind, namespace, one)
            for kind in types_of(admission.pools())
            for one in server.resources(kind)
        ]
    show_json({"apiVersion": "v1", "kind": "List", "items": items})
