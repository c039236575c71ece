"""Measure the original and Moorage with the same fleets; write a table, JSON and charts."""

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
        help="small fleets, short measurements: about three minutes",
    )
    size.add_argument(
        "--tiny",
        action="store_const",
        dest="plan",
        const="tiny",
        help="only check that everything works: takes seconds, and the figures mean nothing",
    )
    size.add_argument(
        "--million",
        action="store_const",
        dest="plan",
        const="million",
        help="one fleet of a million flat hosts, on SQLite only: a few minutes, 4 GB of disk",
    )
    parser.add_argument(
        "--service",
        action="append",
        default=[],
        help="measure only services whose names contain this; can be given several times",
    )
    parser.add_argument(
        "--original",
        type=Path,
        default=ROOT / ".venv-original",
        help="the virtual environment in which the original is installed",
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--directory", type=Path, help="create the databases in this folder")
    parser.add_argument(
        "--write-docs",
        type=Path,
        nargs="?",
        const=ROOT / "docs",
        metavar="FOLDER",
        help="write tables and charts to performance.md and scale.md in FOLDER (default: docs)",
    )
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        type=Path,
        default=[],
        metavar="JSON",
        help="measure nothing, use the figures of this run; can be given several times",
    )
    return parser.parse_args(words)


@contextlib.contextmanager
def workspace(where: Path | None) -> Iterator[Path]:
    """Create a temporary folder that the user of the database can enter, too."""
    with tempfile.TemporaryDirectory(prefix="moorage-bench-", dir=where) as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


def measure_all(options: argparse.Namespace, plan: Plan) -> dict[str, Any]:
    """Measure everything; print each line as soon as it is measured."""
    found: list[Measurement] = []
    checks: list[Check] = []

    def show(one: Measurement | Check) -> None:
        if isinstance(one, Check):
            checks.append(one)
            print(report.check_line(one), flush=True)
        else:
            found.append(one)
            print(report.line(one), flush=True)

    with workspace(options.directory) as directory:
        about = {**machine.describe(directory), "code": machine.code(ROOT)}
        print(documents.machine_line(about), flush=True)
        run = Run(directory, plan, options.original, options.service, show)
        started = time.perf_counter()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run.measure_all())
    print(f"\n{report.comparison(found)}\n")
    about["minutes"] = (time.perf_counter() - started) / 60
    return report.document(about, plan.describe(), run.skipped, found, checks)


def main() -> int:
    """Measure; return 0 if every operation and every check of Moorage succeeded."""
    options = arguments()
    if options.sources:
        content = report.join([json.loads(path.read_text()) for path in options.sources])
    else:
        plan = PLANS[options.plan or "full"]()
        content = measure_all(options, plan)
        path = options.json or RESULTS / time.strftime("%Y%m%dT%H%M%SZ.json", time.gmtime())
        report.write_json(path, content)
        documents.write_charts(content, path.with_suffix(""))
        minutes = content["machine"]["minutes"]
        print(f"figures written to {path}, charts next to it; took {minutes:.1f} minutes")
    if options.write_docs is not None:
        documents.write(content, options.write_docs)
    return report_failures(content)


def report_failures(content: dict[str, Any]) -> int:
    """Print the failures of Moorage and return the exit code; the original may fail."""
    bad = [
        f"{one.target}, {one.fleet}, {one.what}: {one.failed} of {one.operations} failed, "
        f"for example:\n{one.complaint}"
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
