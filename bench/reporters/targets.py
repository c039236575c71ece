"""What must hold of the figures, and how busy others kept the machine meanwhile."""

import os
from collections.abc import Iterable

from bench import machine
from bench.machine import Moment


class Targets:
    """The targets of a run, and how many were missed."""

    def __init__(self) -> None:
        self.missed = 0

    def check(self, what: str, kept: bool, target: str) -> None:
        """Print a figure with its target."""
        self.missed += not kept
        print(f"{what} ({'' if kept else 'MISSED: '}{target})", flush=True)


class Others:
    """What other programs use of the processors; `roots` are our processes besides this one."""

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = [os.getpid(), *roots]
        self._began, self._spent = Moment.now(), machine.processor_seconds(self._roots)

    def __str__(self) -> str:
        now, spent = Moment.now(), machine.processor_seconds(self._roots)
        busy = now.busy - self._began.busy - (spent - self._spent)
        available = (now.at - self._began.at) * (os.cpu_count() or 1)
        return f"others used {max(0.0, busy) / available:.0%} of the processors"
