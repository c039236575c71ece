"""An event loop whose time is virtual, and processes that end between any two steps.

The loop never waits: if nothing can run now, its time jumps to that of the next timer.
"""

import asyncio
import selectors
from contextvars import Context, ContextVar, copy_context
from typing import Any


class StandstillError(Exception):
    """Everything waits, and no timer will ever wake anything."""


class _Jumping(selectors.SelectSelector):
    """Never waits for files: lets time pass instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise StandstillError
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop at second 0."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)
        self.set_task_factory(_task_of_process)

    def time(self) -> float:
        """Return the virtual time."""
        return self._jumping.now


async def passed(seconds: float) -> None:
    """Return after this much virtual time; nobody waits for it in real time."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    timer = loop.call_later(seconds, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()


class Process:
    """A process of the world: all tasks that are created in its context belong to it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = False
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self.context: Context = copy_context()
        self.context.run(CURRENT.set, self)

    def start(self, work: Any) -> "asyncio.Task[Any]":
        """Run a coroutine as a part of it."""
        return asyncio.get_running_loop().create_task(work, context=self.context.copy())

    def kill(self) -> None:
        """End it as SIGKILL does: nothing that it still runs reaches anybody."""
        self.dead = True
        for task in list(self._tasks):
            task.cancel()

    def own(self, task: "asyncio.Task[Any]") -> None:
        """Take a new task."""
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        if self.dead:
            task.cancel()


CURRENT: ContextVar[Process | None] = ContextVar("CURRENT", default=None)
"""The process to which the running code belongs; None: to the world."""


def _task_of_process(
    loop: asyncio.AbstractEventLoop, work: Any, context: Context | None = None
) -> "asyncio.Task[Any]":
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, context=context)
    process = CURRENT.get() if context is None else context.get(CURRENT)
    if process is not None:
        process.own(task)
    return task
