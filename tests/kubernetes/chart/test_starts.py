"""Kubernetes lets a server start as long as the values permit, and no release calls it failed."""

from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.chart.helm import Helm, Object, Refused, named
from tests.kubernetes.chart.sets import SETS

HOUR = 3_600
SERVERS = {"sqlite": "StatefulSet/moorage", "postgresql": "Deployment/moorage"}


def started(tmp_path: Path, name: str, server: dict[str, Any]) -> Object:
    """Return the spec of the workload of a server with other values."""
    values = SETS[name]
    objects = Helm(tmp_path).template(
        {**values, "server": {**values.get("server", {}), **server}},
    )
    spec: Object = named(objects, SERVERS[name])["spec"]
    return spec


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize(
    ("server", "seconds"),
    [({}, HOUR), ({"startSeconds": 60}, 60), ({"startSeconds": 86_401}, 86_401)],
    ids=["default", "short", "a day"],
)
def test_a_start_may_take_this_long(
    tmp_path: Path, name: str, server: dict[str, Any], seconds: int
) -> None:
    """Until then nothing ends it: a migration that is ended is rolled back, and begins again."""
    spec = started(tmp_path, name, server)
    probe = spec["template"]["spec"]["containers"][0]["startupProbe"]
    given = probe["periodSeconds"] * probe["failureThreshold"]
    assert seconds <= given < seconds + probe["periodSeconds"]
    if name == "postgresql":
        assert spec["progressDeadlineSeconds"] > given


@pytest.mark.parametrize("seconds", [0, 59, -1, 604_801, 0.5])
def test_a_start_without_time_is_refused(tmp_path: Path, seconds: float) -> None:
    """A minute is the least, a week the most."""
    with pytest.raises(Refused, match="at '/server/startSeconds'"):
        started(tmp_path, "sqlite", {"startSeconds": seconds})
