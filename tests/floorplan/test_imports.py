"""The import contracts hold, and each of them detects a violation."""

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.floorplan.tidy import ROOT

PLANTED = {
    "floors": ("core/limits.py", "import moorage.service"),
    "pure": ("core/errors.py", "import time"),
    "store-choice": ("service/__init__.py", "import moorage.store.sqlite"),
    "faces": ("faces/testing.py", "import moorage.faces.placement"),
    "client-alone": ("client/__init__.py", "import msgspec"),
    "integrations-alone": ("integrations/ironic/states.py", "import moorage.core.errors"),
    "faces-see-no-store": ("faces/web.py", "import moorage.store.api"),
    "run-alone": ("client/run/lease/lease_clock.py", "import moorage.wire.admission"),
    "wire-alone": ("wire/problems.py", "import msgspec"),
    "core-rooms": ("core/ledger/model.py", "import moorage.core.admission.model"),
    "store-rooms": ("store/ledger/rows.py", "import moorage.store.admission.rows"),
    "service-rooms": ("service/feed/bell.py", "import moorage.service.admission"),
    "cli-faces": ("cli/support/views/simulate_chart.py", "import moorage.faces.web"),
    "acyclic": ("core/clock.py", "import moorage.core.ledger.model"),
}


def lint(folder: Path) -> str:
    """Run the contracts over the package in `folder`; return the output of the linter."""
    command = "from importlinter.cli import lint_imports_command as run; run()"
    finished = subprocess.run(
        [sys.executable, "-c", command, "--no-cache", "--config", str(ROOT / ".importlinter")],
        env={**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1", "COLUMNS": "200"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return finished.stdout + finished.stderr


def contract_names() -> dict[str, str]:
    """Return each contract's short name and the name in reports."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    prefix = "importlinter:contract:"
    return {
        section.removeprefix(prefix): contracts[section]["name"]
        for section in contracts.sections()
        if section.startswith(prefix)
    }


def test_contracts_hold() -> None:
    """Imports lead downwards only, the core is pure, and no face imports another."""
    output = lint(ROOT / "src")
    assert f"Contracts: {len(contract_names())} kept, 0 broken." in output, output


def test_planted_imports_break_every_contract(tmp_path: Path) -> None:
    """In a copy with one forbidden import per contract, every contract is reported broken."""
    shutil.copytree(ROOT / "src/moorage", tmp_path / "moorage")
    for path, line in PLANTED.values():
        with (tmp_path / "moorage" / path).open("a") as file:
            file.write(f"\n{line}\n")
    output = lint(tmp_path)
    assert PLANTED.keys() == contract_names().keys()
    for name in contract_names().values():
        assert re.search(rf"^{re.escape(name)} BROKEN", output, re.MULTILINE), output
