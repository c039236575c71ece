"""`python -m bench`: start a service, load a fleet, measure, print one table, write JSON."""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop

from bench import report
from bench.scenarios import Measurement, Options, measurements
from bench.target import Moorage, Target

RESULTS = Path(__file__).parent / "results"


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    default = Options()
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--flat", type=int, default=default.flat, help="flat hosts to load")
    parser.add_argument("--trees", type=int, default=default.trees, help="nested hosts to load")
    parser.add_argument(
        "--seconds", type=float, default=default.seconds, help="length of each measurement"
    )
    parser.add_argument(
        "--connections",
        type=lambda text: tuple(int(word) for word in text.split(",")),
        default=default.connections,
        help="numbers of connections, such as 1,8,64",
    )
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--directory", type=Path, help="where the database is made (its disk!)")
    return parser.parse_args(words)


async def measured(target: Target, options: Options) -> list[Measurement]:
    """Measure everything, printing each line as soon as it is known."""
    done = []
    print(report.HEAD, flush=True)
    async for one in measurements(target, options):
        print(report.line(one), flush=True)
        done.append(one)
    return done


def main() -> int:
    """Measure Moorage; 0 if every single operation succeeded."""
    asked = arguments()
    options = Options(asked.flat, asked.trees, asked.seconds, asked.connections)
    path = asked.json or RESULTS / time.strftime("%Y%m%dT%H%M%SZ.json", time.gmtime())
    with contextlib.ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="moorage-bench-", dir=asked.directory)
        directory = Path(stack.enter_context(folder))
        about = report.machine(directory)
        print(f"moorage, SQLite, noauth2: {options.flat} flat hosts, {options.trees} nested")
        print(report.told(about), flush=True)
        target = stack.enter_context(Moorage(directory))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            done = runner.run(measured(target, options))
    report.written(path, target.name, options, about, done)
    print(f"written to {path}")
    failed = [one for one in done if one.failed]
    for one in failed:
        print(f"{one.what}: {one.failed} of {one.operations} failed, such as:\n{one.complaint}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
