"""Counts what one operation costs, and compares this with the budgets.

    python -m tests.budgets [--write] [--raise]

prints a table, and fails if a figure exceeds its budget by more than 2 %. A figure that does so is
printed with the functions or statements that it consists of. `--write` lowers the budgets to the
figures; `--raise` raises them, too, for a change that is worth it: its commit says why.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.budgets import budget, instructions
from tests.budgets.counting import KINDS
from tests.budgets.figures import Figure, measure
from tests.support.suites import print_line


def table(figures: Iterable[Figure]) -> Iterator[str]:
    """Return the lines of a table with all figures."""
    yield f"{'one operation':<24}{'':<8}" + "".join(f"{kind:>12}" for kind in KINDS)
    for figure in figures:
        numbers = "".join(f"{figure.numbers[kind]:>12.6g}" for kind in KINDS)
        yield f"{figure.operation:<24}{figure.way:<8}{numbers}"


def instructions_told() -> Iterator[str]:
    """Return lines about the processor instructions of operations."""
    if not instructions.countable():
        yield "instructions are not counted: `perf stat` is missing, or this machine has no counter"
        return
    with tempfile.TemporaryDirectory(prefix="moorage-instructions-") as folder:
        for one in instructions.measure(Path(folder)):
            yield f"{one.operation:<24}{one.way:<8}{one.number:>14,.0f} instructions"


def judgement(figures: list[Figure], budgets: budget.Budgets) -> tuple[list[str], int]:
    """Return what to say about figures, and the exit code."""
    found = list(budget.differences(figures, budgets))
    lines: list[str] = []
    for one in found:
        if one.is_over:
            lines.append(f"over budget: {one}; it consists of")
            most = one.figure.most[one.kind]
            lines += [f"    {number:>10.6g} {name}" for name, number in most]
    lines += [f"below its budget: {one}" for one in found if not one.is_over]
    if lines:
        lines.append("`make budgets` lowers budgets; CONTRIBUTING.md says when to raise them")
    return lines, int(any(one.is_over for one in found))


def main() -> int:
    """Measure, and compare or write; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.budgets", description=__doc__)
    parser.add_argument("--write", action="store_true", help="lower the budgets to the figures")
    parser.add_argument("--raise", action="store_true", dest="up", help="raise them, too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="moorage-budgets-") as folder:
        figures = measure(Path(folder))
    print_line("\n".join(table(figures)))
    print_line("\n".join(instructions_told()))
    if asked.write or asked.up:
        budget.write(figures, raised=asked.up)
    budgets = budget.read()
    if budgets is None:
        print_line(f"budgets: there are none for Python {budget.VERSION}")
        return 0
    lines, code = judgement(figures, budgets)
    print_line("\n".join([*lines, f"budgets: {'exceeded' if code else 'kept'}"]))
    return code


if __name__ == "__main__":
    sys.exit(main())
