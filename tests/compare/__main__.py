"""`python -m tests.compare`: the same requests to the original and to Moorage, side by side.

The first difference that is not meant ends the run; its sequence is made small and shown, and the
exit code is 1. With `--survey` every kind of difference is counted instead, with its first example.
"""

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from tests.compare import sides
from tests.compare.report import Survey, say, shown_differences
from tests.compare.runs import Run
from tests.compare.sides import Sides

SEEDS = 10**9


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, help="repeats a run; otherwise a new one")
    parser.add_argument("--requests", type=int, default=1_000, help="so many (1,000)")
    parser.add_argument("--length", type=int, default=150, help="of a sequence (150)")
    parser.add_argument("--database", help="Moorage's, instead of a file; it is wiped")
    parser.add_argument("--survey", action="store_true", help="count all, end at none")
    parser.add_argument(
        "--itself", action="store_true", help="the original beside itself, other seed of hashes"
    )
    return parser.parse_args()


@contextlib.asynccontextmanager
async def opened(asked: argparse.Namespace, folder: Path) -> AsyncIterator[Sides]:
    """Start both sides."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(sides.original(folder / "original"))
        if asked.itself:
            others = {"original": stack.enter_context(sides.original(folder / "itself", "1"))}
        else:
            database = asked.database or folder / "moorage.db"
            others = {"moorage": stack.enter_context(sides.ours(database))}
        async with Sides.open(first.url, {name: it.url for name, it in others.items()}) as both:
            yield both
        for name, server in others.items():
            assert "Traceback" not in "".join(server.said), (
                f"{name}: {''.join(server.said)[-5000:]}"
            )


async def compare(asked: argparse.Namespace, folder: Path) -> int:
    """Run what was asked for and say how it went."""
    seed = asked.seed if asked.seed is not None else random.SystemRandom().randrange(SEEDS)
    async with opened(asked, folder) as both:
        run = Run(both, seed, asked.length)
        if asked.survey:
            survey = Survey()
            async for outcome in run.surveyed(asked.requests):
                survey.add(outcome)
            say(survey.text())
            failed = bool(survey.kinds)
        else:
            found = await run.until_found(asked.requests)
            failed = found is not None
            if found is not None:
                say(shown_differences(found))
        say(run.counts())
        say(f'again: make compare ARGS="--seed {seed} --requests {asked.requests}"')
    return int(failed)


def main() -> int:
    """Compare."""
    asked = arguments()
    with tempfile.TemporaryDirectory() as folder:
        try:
            return asyncio.run(compare(asked, Path(folder)))
        except sides.Absent as problem:
            say(f"compare: {problem}")
            return 2


if __name__ == "__main__":
    sys.exit(main())
