"""What a hostile or broken Ironic answers: it harms neither the reporter nor the ledger."""

from tests.integrations.ironic.report.world import World, logged, played, whole


@played(3)
async def test_a_node_with_novas_trait(it: World) -> None:
    """It is reported without it, so that its provider still follows; the log says it once."""
    it.node(1).members["traits"] = ["OWNER_NOVA", "CUSTOM_RACK_7"]
    async with it.reporter() as reporter:
        with logged() as lines:
            await whole(reporter)
            await whole(reporter)
        assert len([line for line in lines if "OWNER_NOVA is not reported" in line]) == 1
        assert it.providers()[it.node(1).uuid].traits == ["CUSTOM_RACK_7"]
        it.change(1, resource_class="other")
        assert await reporter.tick()
        assert [*it.providers()[it.node(1).uuid].inventories] == ["CUSTOM_OTHER"]
