"""What holds for every test: no example is judged by how long it took, the machine is shared."""

import pytest
from hypothesis import settings

from tests.support import seeds

settings.register_profile("shared_machine", deadline=None)
settings.load_profile("shared_machine")


def pytest_configure() -> None:
    """Choose the share of all seeds that is played."""
    seeds.take_turn()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not belong to the rest of the seeds, if only that is asked for."""
    items[:], left_out = seeds.leave_out(items)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
