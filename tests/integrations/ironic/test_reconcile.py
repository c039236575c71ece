"""What a pass believes of a list, and what it does if Moorage refuses something."""

from collections.abc import Callable, Sequence

from moorage.client.transport import RefusedError
from moorage.integrations.ironic.nodes import Node, NodeReader
from moorage.integrations.ironic.reconcile import Reconciler
from moorage.wire.admission import Lease
from tests.integrations.ironic.world import DEPLOY_SECONDS, World, played


def hiding(nodes: NodeReader, hidden: Callable[[Node], bool]) -> None:
    """Let lists lack some nodes."""
    everything = nodes.all

    async def some(fields: Sequence[str]) -> list[Node]:
        return [node for node in await everything(fields) if not hidden(node)]

    nodes.all = some  # type: ignore[method-assign] # a test double


@played(2, 1)
async def test_a_list_that_lacks_a_busy_node(it: World) -> None:
    """A node that is missing in a list keeps its unit until Ironic says that there is none."""
    it.double.fleet.ask(it.node(1), "deploy", [])
    async with it.host_leases() as (host_leases, nodes):
        reconciler = Reconciler(host_leases, nodes, it.rules)
        assert len((await reconciler.run_once()).adopted) == 1
        hiding(nodes, lambda node: node["name"] == "node-1")
        assert (await reconciler.run_once()).released == 0
        assert len(it.leases()) == 1
        del it.double.fleet.nodes[it.node(1).uuid]
        assert (await reconciler.run_once()).released == 1


@played(2, 2)
async def test_one_refusal_does_not_stop_a_pass(it: World) -> None:
    """Moorage refuses the outcome of one node: the unit of the other is released all the same."""
    for number in (1, 2):
        it.double.fleet.ask(it.node(number), "deploy", [])
    async with it.host_leases() as (host_leases, nodes):
        reconciler = Reconciler(host_leases, nodes, it.rules)
        assert len((await reconciler.run_once()).adopted) == 2
        await it.double.advance(DEPLOY_SECONDS)
        first, report = it.leases()[0].id, host_leases.report

        async def refused(lease: Lease, result: str, detail: str) -> None:
            if lease.id == first:
                raise RefusedError(403, "forbidden", "Not for this pool.", "req")
            await report(lease, result, detail)

        host_leases.report = refused  # type: ignore[method-assign] # a test double
        assert (await reconciler.run_once()).released == 1
        assert [lease.id for lease in it.leases()] == [first]
