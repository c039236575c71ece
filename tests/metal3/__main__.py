"""`python -m tests.metal3`: stock clients of Kubernetes work with the double.

kubectl, and the framework that the governor of hosts uses. This proves the double: that clients
which know only real API servers do with it what they do there.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.metal3.framework import framework_problems
from tests.metal3.kubectl import TOKEN, Kubectl, steps
from tests.support.certificates import Certificate, certificate
from tests.support.kubernetes_double.access import ADMIN
from tests.support.kubernetes_double.server import KubernetesDouble
from tests.support.suites import print_line


async def kubectl_problems(
    command: str, folder: Path, trusted: Certificate
) -> tuple[int, list[str]]:
    """Return how many steps there are, and what is wrong with them."""
    number, problems = 0, []
    async with KubernetesDouble(accounts={TOKEN: ADMIN}, tls=trusted.server()) as double:
        kubectl = Kubectl(command, folder, double.url, trusted)
        async for what, right, text in steps(double, kubectl):
            number += 1
            if not right:
                problems.append(f"FAILED kubectl: {what}\n{text.rstrip()}")
    return number, problems


async def run(asked: argparse.Namespace) -> int:
    """Run everything, and print what is wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trusted = certificate(folder, "IP:127.0.0.1")
        number, problems = await kubectl_problems(asked.kubectl, folder, trusted)
        print_line(f"kubectl: {number - len(problems)} passed, {len(problems)} failed")
        seen, more = await framework_problems(asked.kopf, trusted)
        print_line(f"kopf: {seen} changes seen, {len(more)} problems")
    found = [*problems, *more]
    for problem in found:
        print_line(problem)
    return 1 if found else 0


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.metal3", description=__doc__)
    parser.add_argument("--kubectl", default="kubectl", help="the command")
    parser.add_argument("--kopf", required=True, help="a Python that has the framework")
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
