"""A context manager that closes itself. Standard library only: other environments use it."""

from types import TracebackType
from typing import Self


class Closing:
    """Has `close`, and calls it at the end of its context."""

    def close(self) -> None:
        """End what it has started."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
