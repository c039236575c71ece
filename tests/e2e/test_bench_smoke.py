"""The benchmark runs from beginning to end and its figures are sane."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_bench_in_small(tmp_path: Path) -> None:
    """A small fleet for a short time: nothing fails, and every line has plausible figures."""
    result = tmp_path / "result.json"
    small = ["--flat", "40", "--trees", "10", "--seconds", "0.2", "--connections", "1,4"]
    finished = subprocess.run(
        [sys.executable, "-m", "bench", *small, "--json", str(result)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    report = json.loads(result.read_text())
    lines = report["measurements"]
    assert report["options"]["connections"] == [1, 4]
    assert report["machine"]["sync_ms_p50"] > 0
    loaded = [line["operations"] for line in lines if line["what"].startswith("load")]
    # 51 roots, 20 cells, 20 devices, and inventories for all of them.
    assert loaded == [51, 20, 20, 91]
    measured = [line for line in lines if not line["what"].startswith("load")]
    assert len(measured) == 4 * 2 + 2 * 2
    for line in lines:
        assert line["failed"] == 0
        assert line["operations"] > 0
        assert 0 < line["p50"] <= line["p99"]
        assert line["rate"] > 0
    asked = {line["what"]: line["answer_bytes"] for line in measured}
    assert asked["candidates flat limit=1000"] > asked["candidates flat limit=10"] > 1_000
