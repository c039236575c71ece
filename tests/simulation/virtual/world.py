"""A world in virtual time: programs that are killed and started again, and a service that dies.

What is special about a simulation is in its subclass: what there is, and what happens.
"""

import asyncio
from collections import deque
from contextlib import suppress
from random import Random
from typing import Any, ClassVar, Self

from tests.simulation.virtual.loop import CURRENT, Process, VirtualLoop


class Program:
    """A program whose process may be killed and started again."""

    def __init__(self, world: Any, name: str) -> None:
        self.world, self.name = world, name
        self.process = Process(name)
        self.process.dead = True
        self.began = 0.0

    def start(self) -> None:
        """Start a process."""
        self.process = Process(self.name)
        self.began = self.world.now()
        self.world.alive[self.process] = self
        self.process.context.run(self._start)

    def _start(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        """Kill it."""
        self.world.alive.pop(self.process, None)
        self.process.kill()

    async def end(self) -> None:
        """End it as SIGTERM does."""
        self.kill()


class VirtualWorld:
    """The world of one seed."""

    variable: ClassVar[str]
    """The environment variable that repeats a seed."""
    pauses: ClassVar[tuple[float, ...]]
    """How long a killed program may be away, in seconds."""

    def __init__(self, seed: int, random: Random) -> None:
        """Prepare the world; `random` is that of the seed."""
        self.seed, self.random = seed, random
        self.faulty = True
        self.deadly = 0.0
        """How likely a process is killed at each request."""
        self.log: deque[tuple[Any, ...]] = deque(maxlen=80)
        self.loop = VirtualLoop()
        self.alive: dict[Process, Program] = {}
        self.programs: list[Program] = []
        self.moorage: Any = None
        """The service, see `moorage_away`."""

    # What the parts of the world use.

    def now(self) -> float:
        """Return the virtual time."""
        return self.loop.time()

    def chance(self, likely: float) -> bool:
        """Return whether a fault happens."""
        return self.faulty and self.random.random() < likely

    def tell(self, *said: object) -> None:
        """Add a line to the story."""
        self.log.append((self.now(), *said))

    def later(self, seconds: float, work: Any) -> None:
        """Do something in the world."""
        self.loop.call_later(seconds, work, context=self.process.context)

    def broken(self, error: BaseException) -> None:
        """Something has failed that must not: end the run."""
        if not self.ended.done():
            self.ended.set_exception(error)

    def moorage_dies(self, where: str) -> bool:
        """Let the service die here, or not; it comes back later."""
        if not self.chance(0.002):
            return False
        self.tell("Moorage dies", where)
        self.moorage_away(self.random.choice([0.5, 3.0, 30.0, 100.0]))
        return True

    def moorage_away(self, seconds: float) -> None:
        """Let Moorage be away for a time."""
        self.moorage.stop()
        self.later(seconds, self.moorage_back)

    def moorage_back(self) -> None:
        """Start Moorage, unless it runs."""
        if self.moorage.service is None:
            self.moorage.start()

    def killed(self, process: Process) -> None:
        """A process is killed: it is started again some time later."""
        program = self.alive.get(process)
        if program is not None:
            self.tell("SIGKILL", program.name)
            self.revive(program)

    def revive(self, program: Program) -> None:
        """Kill a program, and start it again some time later."""
        program.kill()
        self.later(self.random.choice(self.pauses), lambda: self.again(program))

    def again(self, program: Program) -> None:
        """Start a program again, unless it runs or must not."""
        if program.process.dead and self.may_start(program):
            self.tell("starts", program.name)
            program.start()

    def may_start(self, program: Program) -> bool:
        """Return whether a program that does not run may be started."""
        return True

    def sender(self) -> Process:
        """Return the process that sends a request now; it may be killed soon."""
        process = CURRENT.get()
        assert process is not None
        if process.dead:
            raise asyncio.CancelledError
        if self.chance(self.deadly):
            self.later(self.random.uniform(0.0, 0.15), lambda: self.killed(process))
        return process

    # Its course.

    def run(self) -> Self:
        """Run it; return itself."""
        asyncio.set_event_loop(None)
        self.loop.set_exception_handler(self._failed)
        try:
            self.loop.run_until_complete(self._run())
        except BaseException as error:
            error.add_note(self.story())
            raise
        finally:
            self._close()
        return self

    def story(self) -> str:
        """Return the seed and what happened last."""
        lines = [f"{self.variable}={self.seed}, {self.now():.3f} s; the last events:"]
        lines += [f"{at:9.3f} {' '.join(map(str, rest))}" for at, *rest in self.log]
        return "\n".join(lines)

    async def course(self) -> None:
        """Let everything happen."""
        raise NotImplementedError

    def _close(self) -> None:
        self.faulty = False
        for program in self.programs:
            program.kill()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        with suppress(Exception):
            self.loop.run_until_complete(asyncio.sleep(0))
            self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Exception):
            self.broken(error)

    async def _run(self) -> None:
        self.process = Process("world")
        await self.process.start(self._all())

    async def _all(self) -> None:
        self.ended: asyncio.Future[None] = self.loop.create_future()
        course = asyncio.ensure_future(self.course())
        await asyncio.wait([course, self.ended], return_when=asyncio.FIRST_COMPLETED)
        if self.ended.done():
            self.ended.result()
        course.result()
