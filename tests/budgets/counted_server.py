"""A server whose calls, resumed coroutines, hops between threads and SQL statements are counted.

    python -m tests.budgets.counted_server COUNTS DATABASE BOSKOS_CONFIG PLANTED COUNTED

works like `moorage serve` with its defaults, and with the address for clients of Boskos; it writes
its counts to COUNTS (see `counting.py`). PLANTED calls are added to each submitted change: a
control that the counts must show. With 0 for COUNTED, it counts nothing, but is otherwise the same.
"""

import asyncio
import logging
import sys
from collections.abc import Callable
from contextvars import Context
from pathlib import Path
from typing import Any, TypeVarTuple

import apsw
import uvloop

from moorage.config import settings as config
from moorage.core.clock import SECOND
from moorage.serve import lifecycle
from moorage.service import fair_turns
from moorage.service.batch.transactor import Transactor
from moorage.service.fleet import liveness_loop
from tests.budgets.counting import HOP, STATEMENT, Counts

Ts = TypeVarTuple("Ts")

LOG_THREAD = "log"
"""The thread of `serve/log_writer.py`: how many lines it writes at once depends on chance."""


PERIOD_SECONDS = 0.05
"""A timer of this much or more belongs to no request, but to a loop in the background."""

NEVER_SECONDS = 86_400.0


def counted_loop(counts: Counts) -> type[uvloop.Loop]:
    """Return a kind of loop that counts what other threads hand to it, and whose timers rest.

    If loops in the background did something now and then, the counts would depend on chance.
    """

    class CountedLoop(uvloop.Loop):
        def call_soon_threadsafe(
            self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
        ) -> asyncio.Handle:
            counts.one(HOP, "to the loop")
            return super().call_soon_threadsafe(callback, *args, context=context)

        def call_later(
            self,
            delay: float,
            callback: Callable[[*Ts], object],
            *args: *Ts,
            context: Context | None = None,
        ) -> asyncio.TimerHandle:
            seconds = delay if delay < PERIOD_SECONDS else NEVER_SECONDS
            return super().call_later(seconds, callback, *args, context=context)

    counts.leave_out(CountedLoop.call_soon_threadsafe, CountedLoop.call_later)
    return CountedLoop


def rest() -> None:
    """Let nothing else depend on the speed of the machine.

    Long work takes one turn. Signs of life are accepted although the loop rests that writes them.
    """
    fair_turns.PIECE_SECONDS = fair_turns.TURN_SECONDS = NEVER_SECONDS
    liveness_loop.UNWRITTEN_MAX = int(NEVER_SECONDS) * SECOND


def count_statements(counts: Counts) -> None:
    """Count what the connections of SQLite execute; a statement for many rows counts once a row."""

    def traced(event: dict[str, Any]) -> None:
        counts.one(STATEMENT, event["sql"])

    def watch(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, traced)

    counts.leave_out(traced, watch)
    apsw.connection_hooks.append(watch)


def plant(calls: int) -> None:
    """Let each submitted change call a function this many times more."""
    submit = Transactor.submit

    def planted() -> None:
        pass

    async def submit_slowly(self: Transactor, use_case: Any) -> Any:
        for _ in range(calls):
            planted()
        return await submit(self, use_case)

    Transactor.submit = submit_slowly  # type: ignore[method-assign]  # the control


def main(counts_file: str, database: str, boskos: str, planted: str, counted: str) -> int:
    """Serve until a signal arrives."""
    counts = Counts(Path(counts_file))
    if int(counted):
        count_statements(counts)
    rest()
    if int(planted):
        plant(int(planted))
    options = {"listen": "127.0.0.1:0", "boskos_listen": "127.0.0.1:0"}
    options |= {"database": database, "boskos_config": boskos}
    logging.getLogger("moorage.leases").setLevel(
        logging.WARNING
    )  # how many it lists depends on time
    loaded = config.load(options)
    make_loop = counted_loop(counts)

    def loop() -> asyncio.AbstractEventLoop:
        if int(counted):
            counts.begin(LOG_THREAD)
        made: asyncio.AbstractEventLoop = make_loop()
        return made

    return lifecycle.run(loaded, loop)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
