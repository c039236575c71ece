"""Compares lines: ratios to the original, tables, and JSON."""

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.measure import Check, Measurement

HEAD = (
    f"{'fleet':<13} {'what':<42} {'conns':>5} {'ops':>7} {'ops/s':>9} {'p50 ms':>9} {'p99 ms':>9} "
    f"{'CPU ms':>8} {'db ms':>7} {'MB':>5} {'failed':>6} {'load':>5} {'steal':>5} {'others':>6}"
)
REFERENCE = "original, PostgreSQL"
"""The basis of all ratios; where it was not measured, the other original is used."""


DISTURBED = 0.1
"""A line is marked as disturbed if others used more than this share of the processors."""


@dataclass(frozen=True)
class Ratio:
    """How many times better than the original a line is: in rate, in p50, in processor time.

    None: one of the two figures is zero.
    """

    against: str
    rate: float | None
    p50: float | None
    cpu: float | None
    disturbed: bool
    """Whether one of the two lines was disturbed."""


@dataclass(frozen=True)
class Row:
    """A measurement, with its ratio if the same line was measured on the original."""

    measured: Measurement
    ratio: Ratio | None


def line(one: Measurement) -> str:
    """Format a measurement as a row of the progress table."""
    return (
        f"{one.fleet:<13} {one.what:<42} {one.connections:>5} {one.operations:>7} "
        f"{one.rate:>9.1f} {one.p50:>9.2f} {one.p99:>9.2f} {one.server_cpu:>8.3f} "
        f"{one.database_cpu:>7.3f} {one.server_mb + one.database_mb:>5.0f} {one.failed:>6} "
        f"{one.load_before:>5.1f} {one.steal:>5.0%} {one.others:>6.0%}"
        f"{' disturbed' if disturbed(one) else ''}"
    )


def check_line(one: Check) -> str:
    """Format a check as a row of the progress table."""
    return f"{one.fleet:<13} {one.what}: {'yes' if one.kept else 'NO'} ({one.told})"


def rows(measured: Sequence[Measurement]) -> list[Row]:
    """Return all measurements with their ratios, grouped by line."""
    found = [Row(one, ratio(one, measured)) for one in measured]
    order = list(dict.fromkeys(map(_key, measured)))
    return sorted(found, key=lambda row: order.index(_key(row.measured)))


def _key(one: Measurement) -> tuple[str, str, int]:
    return one.fleet, one.what, one.connections


def ratio(one: Measurement, measured: Iterable[Measurement]) -> Ratio | None:
    """Compare a line with that of the original in the same run."""
    wanted = (one.fleet, one.versus or one.what, one.connections)
    peers = {peer.target: peer for peer in measured if peer.peer and _key(peer) == wanted}
    if not peers:
        return None
    peer = peers.get(REFERENCE) or next(iter(peers.values()))
    return Ratio(
        against=peer.target,
        rate=_quotient(one.rate * one.items, peer.rate * peer.items),
        p50=_quotient(peer.p50 / peer.items, one.p50 / one.items),
        cpu=_quotient(_processor(peer), _processor(one)),
        disturbed=disturbed(one) or disturbed(peer),
    )


def disturbed(one: Measurement) -> bool:
    """Return whether other processes or virtual machines disturbed a line."""
    return one.others + one.steal > DISTURBED


def _processor(one: Measurement) -> float:
    return (one.server_cpu + one.database_cpu) / one.items


def _quotient(upper: float, lower: float) -> float | None:
    return upper / lower if upper and lower else None


def times(quotient: float | None) -> str:
    """Format a ratio, such as `2.5x`."""
    if quotient is None:
        return "-"
    return f"{quotient:.0f}x" if quotient >= 20 else f"{quotient:.2g}x"


def comparison(measured: Sequence[Measurement]) -> str:
    """Return the whole table with ratios, for the terminal."""
    lines = [f"{'service':<32} {HEAD} {'rate':>6} {'p50':>6} {'CPU':>6}"]
    before = None
    for row in rows(measured):
        if before not in (None, _key(row.measured)):
            lines.append("")
        before = _key(row.measured)
        three = (row.ratio.rate, row.ratio.p50, row.ratio.cpu) if row.ratio else (None,) * 3
        ratios = " ".join(f"{times(one):>6}" for one in three)
        lines.append(f"{row.measured.target:<32} {line(row.measured)} {ratios}")
    return "\n".join(lines)


def document(
    about: dict[str, object],
    options: dict[str, object],
    skipped: Sequence[str],
    measured: Sequence[Measurement],
    checks: Sequence[Check],
) -> dict[str, Any]:
    """Return everything about a run, for its JSON."""
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {**about, "load_after": list(os.getloadavg())},
        "options": options,
        "not_measured": list(skipped),
        "checks": [asdict(one) for one in checks],
        "measurements": [
            {**asdict(row.measured), "ratio": asdict(row.ratio) if row.ratio else None}
            for row in rows(measured)
        ],
    }


def join(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join several runs: the first, with the lines and checks of the others after its own.

    `others` has the other runs. A service that only some runs could not measure counts as measured.
    """
    first, *others = runs
    joined_run = {**first, "others": others}
    for name in ("not_measured", "checks", "measurements"):
        joined_run[name] = [one for run in runs for one in run[name]]
    known = {one["target"] for one in joined_run["measurements"]}
    joined_run["not_measured"] = [
        why for why in joined_run["not_measured"] if why.partition(":")[0] not in known
    ]
    return joined_run


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a run to a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")


def measurements(content: dict[str, Any]) -> list[Measurement]:
    """Return the measurements of a run."""
    known = Measurement.__dataclass_fields__
    return [
        Measurement(**{name: value for name, value in one.items() if name in known})
        for one in content["measurements"]
    ]


def checks(content: dict[str, Any]) -> list[Check]:
    """Return the checks of a run."""
    return [Check(**one) for one in content["checks"]]


def skipped(content: dict[str, Any]) -> list[str]:
    """Return what was not measured, with the reasons."""
    return list(content["not_measured"])
