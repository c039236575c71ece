"""What operators see of a reporter that cannot do its work."""

from tests.integrations.ironic.report.world import GROUP, World, played
from tests.support.ironic_double.faults import Fault


@played(2)
async def test_a_failed_pass_is_not_the_last_one(it: World) -> None:
    """While Ironic answers with errors the age of the last pass grows: its member is live, only."""
    async with it.reporter() as reporter:
        for _ in range(2):  # the second one says what the first one did
            it.double.faults.pending.append(Fault("list", answer=500))
            assert not await reporter.tick()
        (member,) = it.reporting.group(GROUP).members
        assert (member.live, member.last_pass) == (True, None)
        for _ in range(2):
            assert await reporter.tick()
        (member,) = it.reporting.group(GROUP).members
        assert member.last_pass is not None
