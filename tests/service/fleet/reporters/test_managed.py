"""Reports of providers that agents manage, on both engines: agents come first."""

from msgspec.structs import replace

from moorage.core.ids import ProviderId
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.reported import Mode, Node
from tests.service.fleet.machines import PAGES, agent_id, agent_put, machine, part_id, ready
from tests.service.fleet.pair import Pair, play
from tests.service.fleet.reporters.reporting import join, node, outcomes, report
from tests.service.running import TESTER


def test_reports_leave_parts_and_created_roots_alone(url: str) -> None:
    """A given root is written, as by the Placement API; what the agent manages stays as it is."""

    async def scenario(pair: Pair) -> None:
        one = pair.services[0]
        token = (await join(one, "a")).member.token
        await ready(pair.fleets[0], 1)
        before = await pair.revision()
        for uuid in (part_id(1), ProviderId(agent_id(1))):
            renamed = Node(uuid, "other", inventories={PAGES: InventorySpec(100, reserved=100)})
            for sent in (renamed, Node(uuid, absent=True), Node(uuid)):
                for mode in Mode:
                    answers = await report(one, "a", token, [sent], mode)
                    assert outcomes(answers) == ["class_managed"]
        assert await pair.revision() == before
        assert await pair.offered(1) == 100
        root = await pair.provider(2, VCPU=4)
        await agent_put(pair.fleets[0], agent_id(2), "default", {}, None, TESTER, root)
        await pair.fleets[0].register(agent_id(2), machine(2, root=root), TESTER)
        given = replace(node(2, total=8), uuid=root)
        assert outcomes(await report(one, "a", token, [given])) == ["updated"]
        gone = await report(one, "a", token, [Node(root, absent=True)])
        assert outcomes(gone) == ["provider_has_children"]

    play(url, scenario)
