"""Put a run into the documentation: tables and charts between two marks, and nothing by hand."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import chart, report
from bench.measure import Check, Measurement
from bench.report import Row, rows, times

BEGIN = "<!-- what follows is written by `python -m bench --write-docs` -->"
END = "<!-- end of what is written -->"
SCALED = "Moorage, SQLite"
RESTART = "restart until serving"
FAR = 1_000_000
REASON_MAX = 200


def machine_told(about: dict[str, Any]) -> str:
    """The machine in one line."""
    return (
        f"{about['processors']} processors ({about['processor']}) and {about['memory_mb']} MB of "
        "memory, shared by service, database and load generator; load average "
        f"{about['load_before'][0]:.2f} before; a sync of 4 KiB takes "
        f"{about['sync_ms_p50']:.2f} ms (median); Python {about['python']}, {about['system']}"
    )


def pictures(content: dict[str, Any], base: Path) -> None:
    """Write both charts next to a run's JSON."""
    for name, picture in (("", speed_chart(content)), ("-scale", scale_chart(content))):
        base.with_name(f"{base.name}{name}.svg").write_text(picture)


def write(content: dict[str, Any], folder: Path) -> None:
    """Replace the text between the marks in performance.md and scale.md, and the charts."""
    (folder / "performance.svg").write_text(speed_chart(content))
    (folder / "scale.svg").write_text(scale_chart(content))
    _replace(folder / "performance.md", performance(content))
    _replace(folder / "scale.md", scale(content))


def _replace(path: Path, text: str) -> None:
    before, _, rest = path.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def performance(content: dict[str, Any]) -> str:
    """What docs/performance.md shows of a run."""
    parts = [
        *_runs_told(content),
        _disturbances(report.measurements(content)),
        *(f"Not measured: {_shortened(one)}" for one in content["not_measured"]),
        "![Operations per second of every line](performance.svg)",
        "### Correctness checks",
        checks_table(report.checks(content)),
        "### Ratios to the original",
        "Operations per second, median, processor time for each operation.",
        summary(rows(report.measurements(content))),
        "### All lines",
    ]
    found = rows(report.measurements(content))
    for fleet in dict.fromkeys(row.measured.fleet for row in found):
        parts.append(f"#### Fleet: {fleet}")
        parts.append(_lines_table(row for row in found if row.measured.fleet == fleet))
    return "\n\n".join(parts)


def _runs_told(content: dict[str, Any]) -> Iterator[str]:
    """When, where and of which commit each run was, a paragraph for each."""
    for run in (content, *content.get("others", ())):
        about = run["machine"]
        yield (
            f"Measured at {run['at']} by the plan `{run['options']['plan']}`: "
            f"{machine_told(about)}; load average {about['load_after'][0]:.2f} after. "
            f"The run took {about['minutes']:.0f} minutes. "
            f"Commit of Moorage: {about.get('code', 'not recorded')}."
        )


def _disturbances(measured: Sequence[Measurement]) -> str:
    """How many lines of each service were disturbed by other processes."""
    spoiled = Counter(one.target for one in measured if report.disturbed(one))
    if not spoiled:
        return "No line was disturbed: others never had more than a tenth of the processors."
    told = ", ".join(f"{count} of {target}" for target, count in spoiled.items())
    return (
        f"**Disturbed lines** (others had more than a tenth of the processors): {told}. "
        "They and all ratios that depend on them are marked; do not quote those."
    )


def _shortened(reason: str) -> str:
    """The first line of a reason; the JSON has all of it."""
    return reason.splitlines()[0][:REASON_MAX]


def _others(one: Measurement) -> str:
    return f"**{one.others:.0%}**" if report.disturbed(one) else f"{one.others:.0%}"


def summary(found: Sequence[Row]) -> str:
    """One row for each line that the original was measured on, with its ratios."""
    ours = list(dict.fromkeys(row.measured.target for row in found if not row.measured.peer))
    lines: dict[tuple[str, str, int], dict[str, str]] = {}
    for row in found:
        one, ratio = row.measured, row.ratio
        key = (one.fleet, one.what, one.connections)
        if one.target == report.REFERENCE:
            lines.setdefault(key, {})["p50"] = _three(one.p50)
            lines[key]["rate"] = _three(one.rate)
        elif ratio and not one.peer:
            three = ", ".join(map(times, (ratio.rate, ratio.p50, ratio.cpu)))
            three = f"*{three} (disturbed)*" if ratio.disturbed else three
            lines.setdefault(key, {})[one.target] = three
    columns = ["rate", "p50", *ours]
    return _table(
        ["fleet", "line", "connections", "original: ops/s", "original: p50 ms", *ours],
        (
            [fleet, what, str(connections), *(cells.get(column, "-") for column in columns)]
            for (fleet, what, connections), cells in lines.items()
        ),
    )


def checks_table(checks: Sequence[Check]) -> str:
    """All checks, one row each."""
    return _table(
        ["fleet", "check", "service", "held", "in figures"],
        ([c.fleet, c.what, c.target, "yes" if c.kept else "**no**", c.told] for c in checks),
    )


def _lines_table(found: Iterable[Row]) -> str:
    head = [
        *("line", "connections", "service", "operations", "failed", "ops/s", "p50 ms", "p99 ms"),
        *("CPU ms, service", "CPU ms, database", "memory MB", "load", "steal", "others"),
        *("ratio: ops/s", "p50", "CPU"),
    ]
    body, before = [], ""
    for row in found:
        one = row.measured
        what = one.what + (f" ({one.note})" if one.note else "")
        ratio = row.ratio
        quotients = (ratio.rate, ratio.p50, ratio.cpu) if ratio else (None, None, None)
        body.append(
            [
                *("" if what == before else what, str(one.connections), one.target),
                *(str(one.operations), str(one.failed), _three(one.rate)),
                *(_three(one.p50), _three(one.p99)),
                *(_three(one.server_cpu), _three(one.database_cpu)),
                *(f"{one.server_mb + one.database_mb:.0f}", f"{one.load_before:.1f}"),
                *(f"{one.steal:.0%}", _others(one), *map(times, quotients)),
            ]
        )
        before = what
    return _table(head, body)


def _table(head: list[str], body: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _three(value: float) -> str:
    """Three figures, without an exponent."""
    if not value:
        return "0"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def speed_chart(content: dict[str, Any]) -> str:
    """Operations per second of every line and every service."""
    found = report.measurements(content)
    series = list(dict.fromkeys(one.target for one in found))
    drawn: list[chart.Dots] = []
    fleets = dict.fromkeys(row.measured.fleet for row in rows(found))
    for fleet in fleets:
        drawn.append(chart.Dots(f"fleet: {fleet}", {}))
        lines: dict[str, dict[str, float]] = {}
        for row in rows(found):
            one = row.measured
            if one.fleet == fleet:
                label = f"{one.what}, {one.connections} conn."
                lines.setdefault(label, {})[one.target] = one.rate * one.items
        drawn += [chart.Dots(label, values) for label, values in lines.items()]
    return chart.dots("Operations per second (farther right is better)", "ops/s", series, drawn)


def growth(content: dict[str, Any]) -> dict[str, list[tuple[float, float]]]:
    """What each line on flat fleets costs Moorage: (hosts, milliseconds of processor time)."""
    found: dict[str, list[tuple[float, float]]] = {}
    for one in report.measurements(content):
        if one.target == SCALED and one.fleet.startswith("flat"):
            label = f"{one.what}, {one.connections} conn."
            hosts = _hosts(one.fleet)
            cost = (one.server_cpu + one.database_cpu) / one.items
            if cost > 0:
                found.setdefault(label, []).append((hosts, cost))
    return {label: sorted(points) for label, points in found.items()}


def scale_chart(content: dict[str, Any]) -> str:
    """Processor time of every line over the size of the fleet."""
    return chart.lines(
        "What an operation costs as the fleet grows (lower is better)",
        "flat hosts",
        "ms of processor time",
        [chart.Line(label, points) for label, points in growth(content).items()],
    )


def scale(content: dict[str, Any]) -> str:
    """What docs/scale.md shows of a run."""
    points = growth(content)
    sizes = sorted({hosts for line in points.values() for hosts, _ in line})
    head = ["line", *(f"{_spaced(size)} hosts" for size in sizes), "grows as", "at 1 000 000"]
    body = []
    for label, line in points.items():
        costs = dict(line)
        cells = [_three(costs[size]) if size in costs else "-" for size in sizes]
        body.append([label, *cells, *_extrapolated(line)])
    return "\n\n".join(
        [
            *_runs_told(content),
            f"{SCALED}: milliseconds of processor time per operation (of `refresh in bulk`: per "
            "host); the last column is calculated, not measured.",
            "![Processor time over the size of the fleet](scale.svg)",
            _table(head, body),
            _memory(content),
        ]
    )


def _extrapolated(line: list[tuple[float, float]]) -> list[str]:
    """The exponent between the two largest fleets, and what a million hosts would come to."""
    if len(line) < 2:
        return ["-", "-"]
    (few, less), (many, more) = line[-2:]
    exponent = max(0.0, math.log(more / less) / math.log(many / few))
    return [f"n^{exponent:.2f}", _three(_far(line))]


def _far(line: list[tuple[float, float]]) -> float:
    """Carry a line on to a million hosts, straight or with its exponent: whichever is more."""
    (few, less), (many, more) = line[-2:]
    exponent = max(0.0, math.log(more / less) / math.log(many / few))
    straight = more + max(0.0, more - less) / (many - few) * (FAR - many)
    return max(straight, more * math.pow(FAR / many, exponent))


def _memory(content: dict[str, Any]) -> str:
    """Start-up and memory of every fleet."""
    restarts = (
        one
        for one in report.measurements(content)
        if one.target == SCALED and one.what == RESTART and one.fleet.startswith("flat")
    )
    found = sorted(((_hosts(one.fleet), one) for one in restarts), key=lambda pair: pair[0])
    body = [[one.fleet, _three(one.p50), f"{one.server_mb:.0f}", one.note] for _, one in found]
    if len(found) > 1 and found[-1][0] < FAR:
        ready = _far([(hosts, one.p50) for hosts, one in found])
        memory = _far([(hosts, one.server_mb) for hosts, one in found])
        body.append([f"flat {_spaced(FAR)}", _three(ready), f"{memory:.0f}", "calculated"])
    return _table(["fleet", "ms from start to serving", "memory MB", "memory"], body)


def _hosts(fleet: str) -> float:
    """How many hosts a flat fleet has, by its name."""
    return float(fleet.removeprefix("flat").replace(" ", ""))


def _spaced(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ")
