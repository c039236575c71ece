"""A machine that the tests of a module share."""

import pytest

from tests.faces.v1.fleet.machine import Machine
from tests.faces.v1.native import Native


@pytest.fixture(scope="module")
def machine(native: Native) -> Machine:
    """Return a machine that offers; every test leaves it as it is."""
    return Machine(native).offering()
