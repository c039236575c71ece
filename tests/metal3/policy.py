"""The shipped policy, its CEL evaluated by a public interpreter, on the table of cases."""

import asyncio
import json
from pathlib import Path
from typing import Any

import yaml

from moorage.integrations.metal3.hosts import OWN, PAUSED
from moorage.integrations.metal3.install import manifest
from tests.support.admission_cases import CASES
from tests.support.kubernetes_double.patches import json_patched

PROCESS = Path(__file__).with_name("policy_process.py")
VALUES = {
    "policy_version": "v1",
    "failure_policy": "Fail",
    "failure_reason": "",
    "namespace": "moorage",
}


SHELL = (
    ('jsonpatch.escapeKey("baremetalhost.metal3.io/paused")', '"baremetalhost.metal3.io~1paused"'),
    ("JSONPatch{op: ", '{"op": '),
    ("path: ", '"path": '),
    ("value: ", '"value": '),
)
"""What Kubernetes adds to CEL, which no public interpreter knows, and the same in plain CEL."""


def plain(expression: str) -> str:
    """Return an expression without what Kubernetes adds. Raises ValueError: it has nothing."""
    for special, general in SHELL:
        if special not in expression:
            raise ValueError(f"the expression of the mutation lacks {special}")
        expression = expression.replace(special, general)
    return expression


async def evaluated(python: str, expressions: list[str]) -> Any:
    """Return what each expression gives in each case. Raises ValueError."""
    asked = {"expressions": expressions, "requests": [case.review() for case in CASES]}
    process = await asyncio.create_subprocess_exec(
        *(python, str(PROCESS)), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate(json.dumps(asked).encode())
    if process.returncode:
        raise ValueError("the interpreter of CEL has failed")
    return json.loads(output)


async def policy_problems(python: str) -> tuple[int, list[str]]:
    """Return how many cases there are, and which the policy decides otherwise."""
    policy = next(yaml.safe_load_all(manifest("policy", VALUES)))["spec"]
    conditions = [condition["expression"] for condition in policy["matchConditions"]]
    (mutation,) = policy["mutations"]
    expressions = [*conditions, plain(mutation["jsonPatch"]["expression"])]
    problems = []
    for case, found in zip(CASES, await evaluated(python, expressions), strict=True):
        *answers, operations = found
        if all(answers) is not case.pauses:
            problems.append(f"FAILED policy: {case.what}: expected {case.pauses}, got {answers}")
        elif case.pauses:
            paused = json_patched(case.new, operations)["metadata"]["annotations"]
            if paused != {**case.new["metadata"].get("annotations", {}), PAUSED: OWN}:
                problems.append(f"FAILED policy: {case.what}: annotations {paused}")
    return len(CASES), problems
