"""Long work that can be interrupted: a generator that yields where other work may run."""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Long work that returns its answer. The work between two yields is bounded for any input."""
