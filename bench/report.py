"""Show measurements as one table, and keep them as JSON with what is needed to judge them."""

import json
import os
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.scenarios import Measurement, Options

HEAD = (
    f"{'what':<30} {'conns':>5} {'ops':>8} {'ops/s':>9} {'p50 ms':>8} {'p99 ms':>8} "
    f"{'CPU ms/op':>9} {'bytes':>8} {'failed':>6}"
)
SYNCS = 50


def line(measured: Measurement) -> str:
    """One measurement as a line of the table."""
    return (
        f"{measured.what:<30} {measured.connections:>5} {measured.operations:>8} "
        f"{measured.rate:>9.0f} {measured.p50:>8.2f} {measured.p99:>8.2f} {measured.cpu:>9.3f} "
        f"{measured.answer_bytes:>8} {measured.failed:>6}"
    )


def machine(directory: Path) -> dict[str, object]:
    """What else bears on the figures: processors, load from others, how fast the disk syncs."""
    return {
        "processors": os.cpu_count(),
        "load_before": os.getloadavg(),
        "sync_ms_p50": sync_milliseconds(directory),
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
    }


def sync_milliseconds(directory: Path) -> float:
    """The median time of writing 4 KiB to a file in `directory` and syncing it."""
    path = directory / "sync"
    times = []
    with path.open("wb", buffering=0) as file:
        for _ in range(SYNCS):
            started = time.perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            times.append(1_000 * (time.perf_counter() - started))
    path.unlink()
    return statistics.median(times)


def told(about: dict[str, object]) -> str:
    """The machine in one line."""
    load = about["load_before"]
    assert isinstance(load, tuple)
    return (
        f"{about['processors']} processors shared by service and load generator, "
        f"load {load[0]:.2f} before, sync {about['sync_ms_p50']:.2f} ms, "
        f"Python {about['python']}"
    )


def written(
    path: Path,
    name: str,
    options: Options,
    about: dict[str, object],
    measured: Sequence[Measurement],
) -> None:
    """Write everything as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "target": name,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "options": asdict(options),
        "machine": {**about, "load_after": os.getloadavg()},
        "measurements": [asdict(one) for one in measured],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
