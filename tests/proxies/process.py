"""A proxy that ends with its test."""

import subprocess
from types import TracebackType
from typing import Self

from tests.support.guard import Guard


class ProxyProcess:
    """The process of a proxy. Use it as a context manager."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._guard = Guard(process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._guard.close()
        self._process.terminate()
        self._process.wait()
