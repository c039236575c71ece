"""`python -m tests.alerts`: promtool checks the alert rules, also against a real server.

The cases of `moorage.rules.test.yml` must pass. As a control, each alert is planted with two bugs,
that it never and that it always fires; the cases must find both. Last, a real server's metrics must
be well-formed, and those of a machine whose reservoir has failed must fire its alerts.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import yaml

from tests.e2e.support.machine import Machine
from tests.support.alert_rules import RULES, alerts, parsed_rules
from tests.support.suites import print_line

CASES = Path(__file__).with_name("moorage.rules.test.yml")
ALWAYS, NEVER = "vector(1)", "vector(1) > 1"
FAILED = {
    "code": "no_memory",
    "message": "The kernel gave no page.",
    "attempts": 3,
    "since": "2026-01-02T03:04:05Z",
}
FIRING = {"MoorageReservoirFailed", "MoorageReservoirShort", "MoorageAgentFailures"}
"""The alerts of a machine whose reservoir has failed."""


HOST = "0e3ba7e6-59fb-4a59-9ea2-5a4b7c1f0d66"
EXPORTERS_NAME = (
    'openstack_placement_resource_total non-counter metrics should not have "_total" suffix'
)
"""What promtool says of a name that openstack-exporter has chosen."""


class Promtool:
    """The tool; each call returns its problems, or nothing."""

    def __init__(self, command: str, folder: Path) -> None:
        self._command = command
        self._folder = folder

    def check_rules(self, rules: Path) -> str:
        """Check the syntax of rules."""
        return self._run("check", "rules", str(rules))

    def check_metrics(self, text: str) -> str:
        """Check the format of metrics."""
        return self._run("check", "metrics", given=text)

    def test(self, rules: Any, cases: dict[str, Any]) -> str:
        """Run cases against rules."""
        (self._folder / "rules.yml").write_text(yaml.safe_dump(rules))
        written = self._folder / "cases.yml"
        written.write_text(yaml.safe_dump({**cases, "rule_files": ["rules.yml"]}, sort_keys=False))
        return self._run("test", "rules", str(written))

    def _run(self, *words: str, given: str | None = None) -> str:
        done = subprocess.run(
            [self._command, *words], input=given, capture_output=True, text=True, check=False
        )
        return "" if done.returncode == 0 else (done.stdout + done.stderr).strip()


def about(alert: str, cases: dict[str, Any]) -> list[Any]:
    """Return the cases of one alert."""
    return [case for case in cases["tests"] if case["alert_rule_test"][0]["alertname"] == alert]


def missed(promtool: Promtool, cases: dict[str, Any]) -> list[str]:
    """Return the planted bugs that the cases do not find."""
    found = []
    for alert in alerts():
        for bug in (ALWAYS, NEVER):
            planted = parsed_rules()
            (changed,) = [each for each in alerts(planted) if each["alert"] == alert["alert"]]
            changed["expr"] = bug
            if not promtool.test(planted, {**cases, "tests": about(alert["alert"], cases)}):
                found.append(f"{alert['alert']}: {bug}")
    return found


def metrics_of_a_failed_machine(folder: Path) -> str:
    """Return the metrics of a real server whose only machine has failed."""
    machine = Machine(folder)
    with machine.server as server:
        machine.create()
        registered = machine.register()
        machine.desired(8)
        for status, answer in (registered, machine.report(1, 0, failure=FAILED)):
            assert status == 200, answer
        with urlopen(f"{server.url}/metrics") as answer:
            text: str = answer.read().decode()
            return text


def metrics_for_boards(folder: Path) -> str:
    """Return the metrics of a real server that has those of openstack-exporter, too."""
    machine = Machine(folder, "--openstack-metrics-max", "10")
    with machine.server as server:
        host = {"uuid": HOST, "name": 'Größe "7"\\', "inventories": {"VCPU": {"total": 8}}}
        status, answer = machine.send("POST", "/v1/providers:bulk", {"providers": [host]})
        assert status == 200, answer
        with urlopen(f"{server.url}/metrics") as scraped:
            text: str = scraped.read().decode()
            return text


def wrong_for_boards(promtool: Promtool, text: str) -> list[str]:
    """Return what is wrong with the metrics of openstack-exporter, besides its choice of a name."""
    if 'openstack_placement_resource_total{hostname="Größe' not in text:
        return ["there is no metric of openstack-exporter"]
    return [line for line in promtool.check_metrics(text).splitlines() if line != EXPORTERS_NAME]


def series_of(text: str) -> Iterator[dict[str, str]]:
    """Yield the samples of a text as input of a case, the same for 20 minutes."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            yield {"series": series, "values": f"{value}x20"}


def silent_on_the_real(promtool: Promtool, text: str) -> list[str]:
    """Return what the alerts of a failed machine get wrong on the metrics of a real server."""
    series = [{"series": 'up{job="moorage"}', "values": "1x20"}, *series_of(text)]
    found = []
    for alert in alerts():
        name = alert["alert"]
        expected = {"eval_time": "15m", "alertname": name, "exp_alerts": []}
        case = {"interval": "1m", "input_series": series, "alert_rule_test": [expected]}
        fires = bool(promtool.test(parsed_rules(), {"evaluation_interval": "1m", "tests": [case]}))
        if fires is not (name in FIRING):
            found.append(f"{name} {'fires' if fires else 'is silent'} on a failed machine")
    return found


def main() -> int:
    """Run all checks, and print what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.alerts", description=__doc__)
    parser.add_argument("--promtool", default="promtool", help="the command")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        promtool = Promtool(asked.promtool, Path(folder))
        cases = yaml.safe_load(CASES.read_text())
        text = metrics_of_a_failed_machine(Path(folder))
        boards = Path(folder) / "boards"
        boards.mkdir()
        wrong = [
            promtool.check_rules(RULES),
            promtool.test(parsed_rules(), cases),
            promtool.check_metrics(text),
            *wrong_for_boards(promtool, metrics_for_boards(boards)),
            *missed(promtool, cases),
            *silent_on_the_real(promtool, text),
        ]
    for problem in filter(None, wrong):
        print_line(problem)
    count = sum(map(bool, wrong))
    print_line(f"alerts: {len(cases['tests'])} cases, {count} problems")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
