"""`moorage export`: writes what another service can take over."""

import click

from moorage.cli.support.command import administering, at_server
from moorage.cli.support.options import example
from moorage.cli.support.output import show_json
from moorage.client.admission import Admission


@click.group("export")
def group() -> None:
    """Write what another service can take over."""


@group.command(
    epilog=example(
        "moorage export boskos --namespace test-pods > resources.json",
        "moorage export boskos --namespace test-pods | kubectl apply -f -",
    )
)
@administering
@click.option("--namespace", metavar="NAME", help="Of Boskos; by default the objects name none.")
def boskos(namespace: str | None) -> None:
    """Print the slots of pools as Boskos' custom resources, for kubectl.

    Boskos makes its dynamic types from its own configuration. Leases of the native API and of the
    lease proxy become owners as well: their holders must release them in Boskos.
    """
    from moorage.integrations.boskos.objects import object_of

    with at_server(Admission) as admission:
        items = [
            object_of(pool.name, namespace, one)
            for pool in admission.pools()
            if pool.limit is None and not pool.native_slots
            for one in admission.slots(pool.name).boskos()
        ]
    show_json({"apiVersion": "v1", "kind": "List", "items": items})
