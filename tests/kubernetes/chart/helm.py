"""Helm, which renders and installs the chart; `scripts/kubernetes-tools` builds it."""

import json
import os
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.kubernetes.cluster import ROOT, tool

CHART = ROOT / "deploy/helm/moorage"
RELEASE = NAMESPACE = "moorage"

Object = dict[str, Any]
Values = Mapping[str, Any]


class Refused(Exception):
    """Helm has ended with an error; the message is what it said."""


class Helm:
    """The command. Its folder is its home; `config` names the cluster, if there is one."""

    def __init__(self, folder: Path, config: Path | None = None) -> None:
        self._environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
        if config is not None:
            self._environment["KUBECONFIG"] = str(config)

    def run(self, *words: str, values: Values | None = None) -> str:
        """Run it, with values on its standard input; return its output. Raises Refused.

        What it says on standard error is not returned: Helm notes there what is no problem.
        """
        run = partial(subprocess.run, capture_output=True, text=True, check=False, timeout=120.0)
        more = [] if values is None else ["--values", "-"]
        done = run(
            [tool("helm"), *words, *more],
            input="" if values is None else json.dumps(values),
            env=self._environment,
        )
        if done.returncode != 0:
            raise Refused(done.stdout + done.stderr)
        return done.stdout

    def template(
        self, values: Values, *words: str, chart: Path = CHART, release: str = RELEASE
    ) -> list[Object]:
        """Return the objects that the chart makes from values. Raises Refused."""
        text = self.run(
            *("template", release, str(chart), "--namespace", NAMESPACE, *words), values=values
        )
        found = yaml.load_all(text, yaml.CSafeLoader)
        return [one for one in found if one is not None]

    def install(self, values: Values, *words: str) -> str:
        """Install the release, or upgrade it; return what it said. Raises Refused."""
        return self.run(
            *("upgrade", "--install", RELEASE, str(CHART), "--namespace", NAMESPACE, *words),
            values=values,
        )


def name_of(one: Object) -> str:
    """Return the kind and the name of an object."""
    return f"{one['kind']}/{one['metadata']['name']}"


def named(objects: list[Object], name: str) -> Object:
    """Return an object by its kind and name."""
    (found,) = [one for one in objects if name_of(one) == name]
    return found


def pods(objects: list[Object]) -> dict[str, Object]:
    """Return the templates of all pods, by the kind and the name of what makes them."""
    return {
        name_of(one): one["spec"]["template"]
        for one in objects
        if one["kind"] in ("Deployment", "StatefulSet")
    }
