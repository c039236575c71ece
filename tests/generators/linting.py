"""Lints a document with Redocly's linter, with every recommended rule as an error."""

import json
import os
import subprocess
from pathlib import Path

SECONDS = 300
QUIET = {
    "REDOCLY_TELEMETRY": "off",
    "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    "NO_COLOR": "1",
}
"""The linter asks no other host, and prints no colours."""


def lint(packages: Path, document: Path) -> str | None:
    """Lint a document; return what the linter prints if it finds anything."""
    program = packages.absolute() / "node_modules/.bin/redocly"
    done = subprocess.run(
        [str(program), "lint", "--extends=recommended-strict", str(document)],
        cwd=document.parent,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **QUIET},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.stdout if done.returncode else None


def faulty(document: Path, folder: Path) -> dict[str, Path]:
    """Write copies of a document with one fault each; return them by the rule that finds it."""
    faults = {
        "no-invalid-media-type-examples": _with_wrong_example,
        "operation-4xx-response": _without_refusals,
        "no-empty-servers": _without_servers,
    }
    found = {}
    for rule, plant in faults.items():
        text = document.read_text()
        planted = plant(text)
        assert planted != text, rule
        found[rule] = folder / f"{rule}.json"
        found[rule].write_text(planted)
    return found


def _with_wrong_example(text: str) -> str:
    document = json.loads(text)
    body = document["paths"]["/v1/pools/{name}"]["put"]["requestBody"]["content"]
    body["application/json"]["example"]["limit"] = "one"
    return json.dumps(document)


def _without_refusals(text: str) -> str:
    document = json.loads(text)
    del document["paths"]["/v1/whoami"]["get"]["responses"]["4XX"]
    return json.dumps(document)


def _without_servers(text: str) -> str:
    return json.dumps({**json.loads(text), "servers": []})
