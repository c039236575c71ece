"""The benchmark runs to its end, checks what must hold, and reports it correctly."""

import json
import math
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import documents, report
from bench.measure import Measurement

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[3]
SERVICES = ("Moorage, SQLite", "2 processes")
PREPARED = "flat 60"
"""The fleet that is written to the database before the start, on SQLite only."""
FLAT_TARGETS = {"Moorage, SQLite", "Moorage, PostgreSQL, 2 processes"}


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmark."""
    command = [sys.executable, "-m", "bench", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The JSON of a tiny run of Moorage on both engines, with the original left out."""
    result = tmp_path_factory.mktemp("bench") / "result.json"
    services = [word for name in (*SERVICES, "original") for word in ("--service", name)]
    nowhere = str(result.with_name("nowhere"))
    finished = bench("--tiny", *services, "--original", nowhere, "--json", str(result))
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return result


def content_of(run: Path) -> dict[str, Any]:
    """Return the JSON of a run."""
    content: dict[str, Any] = json.loads(run.read_text())
    return content


def test_every_line_is_plausible(run: Path) -> None:
    """No operation fails, and every line has plausible figures."""
    lines = content_of(run)["measurements"]
    assert {line["target"] for line in lines} == FLAT_TARGETS
    for line in lines:
        assert line["failed"] == 0, line
        assert line["operations"] > 0
        assert 0 < line["p50"] <= line["p99"]
        assert line["rate"] > 0
        assert line["server_mb"] > 1
        assert (line["database_mb"] > 1) == ("PostgreSQL" in line["target"])
        assert line["load_before"] >= 0
        assert 0 <= line["steal"] <= 1
        assert line["ratio"] is None


def test_every_scenario_is_there(run: Path) -> None:
    """Both services were measured with the same lines on the same fleets."""
    lines = content_of(run)["measurements"]
    by_target = {
        target: [
            (line["fleet"], line["what"], line["connections"])
            for line in lines
            if line["target"] == target and line["fleet"] != PREPARED
        ]
        for target in FLAT_TARGETS
    }
    first, second = by_target.values()
    assert first == second
    whats = {what for _, what, _ in first}
    for word in (
        *("load", "limit=10", "no limit", "nothing fits", "isolate", "8x8", "disjoint", "one host"),
        *("release", "schedule loop", "refresh node", "refresh in bulk", "reshape", "race"),
        *("mixed", "restart"),
    ):
        assert any(word in what for what in whats), word


def test_capacity_is_never_exceeded(run: Path) -> None:
    """The checks of each service passed: capacity is not exceeded, one claim of a race succeeds."""
    checks = content_of(run)["checks"]
    found = {(check["target"], check["what"]): check["kept"] for check in checks}
    for target in FLAT_TARGETS:
        assert found[target, "capacity used exactly, never exceeded"]
        assert found[target, "one of eight claims succeeds"]
        assert found[target, "unchanged hosts are not written"]
    assert all(found.values())


def test_missing_services_are_reported(run: Path) -> None:
    """Without the original's environment the run continues, and reports what was not measured."""
    missing = content_of(run)["not_measured"]
    assert len(missing) == 2
    assert all(one.startswith("original") and "C compiler" in one for one in missing)


def test_charts_are_drawn(run: Path) -> None:
    """Both charts are well-formed and show every service."""
    picture = ElementTree.fromstring(run.with_suffix(".svg").read_text())
    said = "".join(picture.itertext())
    assert all(target in said for target in FLAT_TARGETS)
    assert ElementTree.fromstring(run.with_name("result-scale.svg").read_text()) is not None


def test_documents_are_written_between_their_marks(run: Path, tmp_path: Path) -> None:
    """Text outside of the marks stays; the text between them is replaced each time."""
    names = ("performance.md", "scale.md")
    for name in names:
        shutil.copy(ROOT / "docs" / name, tmp_path / name)
    for _ in range(2):
        assert bench("--from", str(run), "--write-docs", str(tmp_path)).returncode == 0
        for name in names:
            before, _, rest = (ROOT / "docs" / name).read_text().partition(documents.BEGIN)
            written = (tmp_path / name).read_text()
            assert written.startswith(before + documents.BEGIN)
            assert written.endswith(documents.END + rest.partition(documents.END)[2])
            assert written.count(documents.BEGIN) == 1
    assert "one of eight claims succeeds" in (tmp_path / "performance.md").read_text()
    assert (tmp_path / "performance.svg").exists()


def test_the_documents_have_their_marks() -> None:
    """The pages that the benchmark writes to have each mark once."""
    for name in ("performance.md", "scale.md"):
        text = (ROOT / "docs" / name).read_text()
        assert text.count(documents.BEGIN) == text.count(documents.END) == 1


def test_failures_and_failed_checks_set_the_exit_code(run: Path, tmp_path: Path) -> None:
    """A failed operation or check makes the command fail for Moorage, but not for the original."""
    content = content_of(run)
    changed = tmp_path / "changed.json"
    for peer, code in ((False, 1), (True, 0)):
        content["checks"][0] |= {"kept": False, "peer": peer}
        changed.write_text(json.dumps(content))
        assert bench("--from", str(changed)).returncode == code
    content["measurements"][0] |= {"failed": 1, "complaint": "500"}
    changed.write_text(json.dumps(content))
    assert bench("--from", str(changed)).returncode == 1


def test_ratios_are_to_the_original_on_postgresql(run: Path) -> None:
    """Rate, median and processor time are compared per item, with the corresponding line."""
    some = report.measurements(content_of(run))[0]
    ours = replace(some, rate=50.0, p50=20.0, server_cpu=2.0, database_cpu=0.0)
    ours = replace(ours, others=0.0, steal=0.0)
    theirs = replace(ours, peer=True, target=report.REFERENCE, rate=10.0, p50=100.0)
    theirs = replace(theirs, server_cpu=30.0, database_cpu=10.0)
    other = replace(theirs, target="original, SQLite", rate=1.0)
    found = report.ratio(ours, [other, theirs, ours])
    assert found == report.Ratio(report.REFERENCE, 5.0, 5.0, 20.0, disturbed=False)
    found = report.ratio(ours, [replace(theirs, others=0.5)])
    assert found is not None
    assert found.disturbed
    many = replace(ours, what="all at once", versus=theirs.what, items=10)
    found = report.ratio(many, [theirs])
    assert found is not None
    assert (found.rate, found.p50) == (50.0, 50.0)
    assert found.cpu is not None
    assert math.isclose(found.cpu, 200.0)
    unmatched: list[Measurement] = [replace(theirs, connections=99)]
    assert report.ratio(ours, unmatched) is None


def test_two_runs_are_shown_as_one(run: Path) -> None:
    """The lines of the second run follow those of the first, and both runs are described."""
    content = content_of(run)
    other = {**content, "at": "some other day", "measurements": content["measurements"][:1]}
    measured = content["measurements"][0]["target"]
    lacking = {**content, "not_measured": [f"{measured}: no disk", "nobody: no disk"]}
    assert report.join([lacking, {**other, "not_measured": []}])["not_measured"] == [
        "nobody: no disk"
    ]
    joined_runs = report.join([content, other])
    assert len(joined_runs["measurements"]) == len(content["measurements"]) + 1
    told = documents.performance(joined_runs)
    assert content["at"] in told and "some other day" in told
