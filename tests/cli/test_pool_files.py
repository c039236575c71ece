"""Files of pools, durations and pacings: what they mean, and the errors of wrong ones."""

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.commands.top import rows
from moorage.cli.support.durations import duration_text, pacing_parse, pacing_text
from moorage.cli.support.output import Failure
from moorage.cli.support.pool_files import differences, read
from moorage.cli.support.views.pool_text import state_of
from moorage.wire.admission import Pacing, Pool, PoolWanted
from moorage.wire.durations import seconds_of

NOW = datetime(2026, 1, 2, tzinfo=UTC)

ALL = """
[pools."install/azure-4"]
limit = 50
ttl = "90s"
ttl_max = "2h"
hold = "20m"
cooldown = 1.5
pacing = "24sx5+3s"
quota = 7
queue_max = 9
labels = {site = "a"}
on_retry = "requeue"
expire = "keep"

[pools.plain]
limit = 1
pacing = {interval = "1m", burst = 2}

[pools.unpaced]
limit = 4
hold = 60
pacing = "none"
quota = "none"
"""


def pool_with(name: str, wanted: PoolWanted, pacing: Pacing | None) -> Pool:
    """Return a pool with these settings, as a server returns it."""
    settings: dict[str, Any] = asdict(wanted) | {"pacing": pacing, "generation": 3, "name": name}
    settings["units"] = wanted.limit or 0
    counts = {"occupied": 0, "resting": 0, "waiting": 0, "free": 1, "over": False, "unheard": 0}
    rest = {"paused": False, "pause_reason": "", "slots": {}, "next_grant_at": None, "first": None}
    return Pool(**settings, **counts, **rest, created_at=NOW, updated_at=NOW)


@pytest.mark.parametrize(
    ("slots", "occupied", "free", "state"),
    [
        ({"dirty": 2}, 0, 0, "2 dirty"),
        ({"dirty": 2, "cleaning": 1, "leased": 1}, 1, 0, "1 cleaning, 2 dirty"),
        ({"leased": 2}, 2, 0, "full"),
        ({"busy": 2}, 2, 0, "full"),
        ({"free": 1, "dirty": 1}, 0, 1, "open"),
        ({}, 0, 0, "full"),
    ],
)
def test_the_state_of_a_pool_with_slots(
    slots: dict[str, int], occupied: int, free: int, state: str
) -> None:
    """It is full if all slots are occupied; otherwise the states of the other slots are shown."""
    pool = pool_with("p", PoolWanted(), None)
    units = sum(slots.values())
    pool = replace(pool, slots=slots, units=units, occupied=occupied, free=free)
    assert state_of(pool) == state
    (row,) = rows([pool])
    assert row[1] == f"{occupied}/{units}"


def test_all_settings_in_a_file(tmp_path: Path) -> None:
    """Every setting is understood, also `none`; a setting that is left out has its default."""
    file = tmp_path / "pools.toml"
    file.write_text(ALL)
    wanted = read(str(file))
    assert wanted == {
        "install/azure-4": PoolWanted(
            limit=50,
            ttl=90,
            ttl_max=7200,
            hold=1200,
            cooldown=1.5,
            pacing=Pacing(interval=24, burst=5, jitter=3),
            quota=7,
            queue_max=9,
            labels={"site": "a"},
            on_retry="requeue",
            expire="keep",
        ),
        "plain": PoolWanted(limit=1, pacing=Pacing(interval=60, burst=2)),
        "unpaced": PoolWanted(limit=4, hold=60, pacing=None),
    }


YAML = """
pools:
  install/azure-4: &install
    limit: 50
    hold: 20m
    pacing: {interval: 24s, burst: 5}
  install/azure-5:
    <<: *install
    quota: none
  plain:
    limit: 1
    labels: {site: a}
"""


def test_files_in_yaml(tmp_path: Path) -> None:
    """YAML files, known by their extension, may use anchors; duplicate keys are refused."""
    file = tmp_path / "pools.yaml"
    file.write_text(YAML)
    install = PoolWanted(limit=50, hold=1200, pacing=Pacing(interval=24, burst=5))
    assert read(str(file)) == {
        "install/azure-4": install,
        "install/azure-5": install,
        "plain": PoolWanted(limit=1, labels={"site": "a"}),
    }
    for text, word in (
        ("pools: {a: {limit: 1}, a: {limit: 2}}", "twice"),
        ("pools: {a: {limit: 1}", "flow mapping"),
        ("pools: {a: {labels: {b: no}}}", "labels"),
        ("pools: &a [*a]", "pools"),
        ("[]", "pools"),
    ):
        file.write_text(text)
        with pytest.raises(Failure, match=word):
            read(str(file))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "pools"),
        ("[pools", "read"),
        ("other = 1\n[pools.a]\nlimit = 1", "nothing else"),
        ("pools = 3", "pools"),
        ("[pools]\na = 3", "table"),
        ("[pools.a]\nsize = 1", "size"),
        ("[pools.a]\nlimit = '1'", "limit"),
        ("[pools.a]\nhold = 'soon'", "soon"),
        ("[pools.a]\nhold = true", "hold"),
        ("[pools.a]\nhold = nan", "nan"),
        ("[pools.a]\nttl = -inf", "inf"),
        ("[pools.a]\npacing = {interval = inf}", "inf"),
        ("[pools.a]\npacing = '5s6'", "5s6"),
        ("[pools.a]\npacing = {interval = 1, speed = 2}", "speed"),
        ("[pools.a]\nexpire = 'never'", "expire"),
        ("[pools.a]\ngeneration = 1", "generation"),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, text: str, word: str) -> None:
    """The error names the file and what is wrong in it."""
    file = tmp_path / "pools.toml"
    file.write_text(text)
    with pytest.raises(Failure) as failure:
        read(str(file))
    assert failure.value.exit_code == 2
    assert str(file) in failure.value.message
    assert word in failure.value.message.replace(str(file), "")


def test_differences() -> None:
    """New, changed and unchanged pools are distinguished; pools not in the file are left alone."""
    same = PoolWanted(limit=50, hold=1200.0)
    wanted = {"same": same, "new": PoolWanted(limit=2), "other": PoolWanted(limit=3, hold=60.0)}
    paced = Pacing(interval=24.0, burst=5)
    pools = [
        pool_with("same", same, paced),
        pool_with("other", PoolWanted(limit=2, hold=60.0), Pacing(interval=30.0)),
        pool_with("unnamed", same, paced),
    ]
    found = differences(wanted, pools)
    assert [(one.name, one.action) for one in found] == [
        ("same", "keep"),
        ("new", "create"),
        ("other", "change"),
    ]
    assert [one.wanted.generation for one in found] == [3, 0, 3]
    assert found[2].wanted == replace(wanted["other"], generation=3)
    assert [line for one in found for line in one.lines()] == [
        "= same",
        "+ new",
        "    limit: 2",
        "~ other",
        "    limit: 2 -> 3",
        "    pacing: 30s -> 20s",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.25, "0.25s"),
        (24, "24s"),
        (60, "1m"),
        (90, "1m30s"),
        (400, "6m40s"),
        (61.5, "1m01.5s"),
        (3_605, "1h05s"),
        (93_600, "1d02h"),
        (59.9999999, "1m"),
        (0.000001, "0.000001s"),
        (1200, "20m"),
        (7200, "2h"),
        (86400, "1d"),
        (None, "-"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    """A duration is printed exactly, and the text can be parsed again."""
    assert duration_text(seconds) == text
    if seconds is not None:
        assert abs(seconds_of(text) - seconds) <= 1e-6


@pytest.mark.parametrize("text", ["none", "24s", "24sx5", "24sx5+3s", "0.5s+10ms"])
def test_pacings(text: str) -> None:
    """A printed pacing can be parsed again."""
    pacing = pacing_parse(text)
    assert pacing is None or isinstance(pacing, Pacing)
    assert pacing_text(pacing) == text.replace("10ms", "0.01s")


@pytest.mark.parametrize("text", ["", "x5", "24s x5 x6", "24sx", "24s+", "5y"])
def test_invalid_pacings(text: str) -> None:
    """A text that is no pacing is refused."""
    with pytest.raises(ValueError, match=r"duration|pacing"):
        pacing_parse(text)
