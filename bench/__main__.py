"""`python -m bench`: the original and Moorage in turn, the same fleets; table, JSON, charts."""

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import uvloop

from bench import documents, machine, report
from bench.measure import Check, Measurement
from bench.run import Plan, Run, plan_full, plan_million, plan_quick, plan_tiny
from bench.target import ROOT

RESULTS = Path(__file__).parent / "results"
PLANS = {"full": plan_full, "quick": plan_quick, "tiny": plan_tiny, "million": plan_million}


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick",
        action="store_const",
        dest="plan",
        const="quick",
        help="small fleets, short lines: about three minutes",
    )
    size.add_argument(
        "--tiny",
        action="store_const",
        dest="plan",
        const="tiny",
        help="only to see that everything works: seconds, and figures that mean nothing",
    )
    size.add_argument(
        "--million",
        action="store_const",
        dest="plan",
        const="million",
        help="one fleet of a million flat hosts, on SQLite alone: some minutes, 4 GB of disk",
    )
    parser.add_argument(
        "--service",
        action="append",
        default=[],
        help="measure only services whose names contain this; may be given several times",
    )
    parser.add_argument(
        "--original",
        type=Path,
        default=ROOT / ".venv-original",
        help="the environment that the original is installed in",
    )
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--directory", type=Path, help="where the databases are made (its disk!)")
    parser.add_argument(
        "--write-docs",
        type=Path,
        nargs="?",
        const=ROOT / "docs",
        metavar="FOLDER",
        help="put tables and charts into performance.md and scale.md (of docs/, if none is named)",
    )
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        type=Path,
        default=[],
        metavar="JSON",
        help="measure nothing; show the figures of this run; given several times, of all of them",
    )
    return parser.parse_args(words)


@contextlib.contextmanager
def workspace(where: Path | None) -> Iterator[Path]:
    """Make a folder that the database's user, too, may enter."""
    with tempfile.TemporaryDirectory(prefix="moorage-bench-", dir=where) as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


def measured(asked: argparse.Namespace, plan: Plan) -> dict[str, Any]:
    """Measure everything; show each line as soon as it is known."""
    found: list[Measurement] = []
    checks: list[Check] = []

    def shown(one: Measurement | Check) -> None:
        if isinstance(one, Check):
            checks.append(one)
            print(report.checked(one), flush=True)
        else:
            found.append(one)
            print(report.line(one), flush=True)

    with workspace(asked.directory) as directory:
        about = {**machine.told(directory), "code": machine.code(ROOT)}
        print(documents.machine_told(about), flush=True)
        run = Run(directory, plan, asked.original, asked.service, shown)
        started = time.perf_counter()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run.everything())
    print(f"\n{report.comparison(found)}\n")
    about["minutes"] = (time.perf_counter() - started) / 60
    return report.document(about, plan.told(), run.skipped, found, checks)


def main() -> int:
    """Measure; 0 if every operation on Moorage succeeded and every check of it held."""
    asked = arguments()
    if asked.sources:
        content = report.joined([json.loads(path.read_text()) for path in asked.sources])
    else:
        plan = PLANS[asked.plan or "full"]()
        content = measured(asked, plan)
        path = asked.json or RESULTS / time.strftime("%Y%m%dT%H%M%SZ.json", time.gmtime())
        report.written(path, content)
        documents.pictures(content, path.with_suffix(""))
        minutes = content["machine"]["minutes"]
        print(f"written to {path}, charts beside it; took {minutes:.1f} minutes")
    if asked.write_docs is not None:
        documents.write(content, asked.write_docs)
    return _judged(content)


def _judged(content: dict[str, Any]) -> int:
    """Name what must not be: failures of Moorage. The original's are figures like others."""
    bad = [
        f"{one.target}, {one.fleet}, {one.what}: {one.failed} of {one.operations} failed, "
        f"such as:\n{one.complaint}"
        for one in report.measurements(content)
        if one.failed and not one.peer
    ]
    bad += [
        f"{one.target}, {one.fleet}, {one.what}: {one.told}"
        for one in report.checks(content)
        if not one.kept and not one.peer
    ]
    for skipped in report.skipped(content):
        print(f"not measured: {skipped}")
        if skipped.startswith("Moorage"):
            bad.append(skipped)
    print(*bad, sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
