"""The words and the order of what lists say."""

from dataclasses import replace

import pytest

from moorage.cli.commands.top.pools import in_order, totals
from moorage.cli.support.tables import Column, draw
from moorage.cli.support.terminal import wrapped
from moorage.cli.support.views.audit_text import change_text
from moorage.cli.support.views.pool_text import explained, state_of
from moorage.wire.admission import Overstay
from tests.cli.tables.answers import pool
from tests.cli.tables.building import NOW, before, built

OPEN = replace(pool(1), name="open")
FULL = replace(pool(1), name="full", free=0)
OVER = replace(pool(1), name="over", free=-2, over=True)
PAUSED = replace(pool(1), name="paused", paused=True, pause_reason="rack 7")
PAUSED_OVER = replace(OVER, name="paused-over", paused=True)
WAITED_FOR = replace(FULL, name="waited-for", waiting=3)
UNHEARD = replace(pool(1), name="unheard", unheard=1)
ALL = [OPEN, FULL, OVER, PAUSED, PAUSED_OVER, UNHEARD, WAITED_FOR]


def test_each_pool_is_counted_once() -> None:
    """A pool over its limit is not full, and a paused one is neither."""
    assert totals(ALL).startswith("7 pools, 2 full, 1 over, 2 paused; ")
    assert totals(ALL).endswith("; 3 waiting; 1 unheard")
    assert [state_of(one) for one in (FULL, OVER, PAUSED_OVER)] == ["full", "over", "paused"]


def test_what_an_operator_has_done_comes_before_what_is_idle() -> None:
    """First where somebody waits or is silent, then paused pools, those over their limit, full."""
    order = ["waited-for", "unheard", "paused", "paused-over", "over", "full", "open"]
    assert [one.name for one in in_order(ALL)] == order
    assert [one.name for one in in_order(ALL, "name")] == [one.name for one in ALL]


def test_a_column_for_pipes_is_not_drawn() -> None:
    """It is neither shown nor named as missing, with `--wide` either; without the mark it is."""
    piped, control = (
        (Column("pool"), Column("limit", piped=mark), Column("in use")) for mark in (True, False)
    )
    rows = [["p", "50", "45/50"]]
    for width in (None, 80):
        assert draw(piped, rows, width).lines == ["pool  in use", "p     45/50"]
    assert "limit" not in " ".join(draw(piped, rows, 8).lines)
    assert "limit" in draw(control, rows, 80).title


def test_a_line_is_broken_between_figures() -> None:
    """Not between a number and its word; if that is not enough, anywhere."""
    text = "40 pools, 7 full; 1700/5860 in use; 148 waiting; 2 unheard"
    assert wrapped(text, 50) == ["40 pools, 7 full; 1700/5860 in use; 148 waiting;", "2 unheard"]
    assert wrapped("2 unheard", 8) == ["2", "unheard"]


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ({"limit": 2, "ttl": 60.0}, {"limit": 3, "ttl": 60.0}, "limit: 2 -> 3"),
        ({"hold": None}, {"hold": 1_200.0}, "hold: 20m"),
        ({"hold": 1_200.0}, {"hold": None}, "hold: 20m -> none"),
        (
            {"pacing": {"interval": 30.0, "burst": 1, "jitter": 0.0}},
            {"pacing": {"interval": 24.0, "burst": 5, "jitter": 3.0}},
            "pacing: 30s -> 24sx5+3s",
        ),
        (
            {"owner": "ci", "key": "k", "state": "granted"},
            {"reason": "rack 7"},
            "reason: rack 7; owner: ci",
        ),
        (False, {"paused": True, "reason": "rack 7"}, "reason: rack 7; paused: true"),
        ({"paused": True}, False, "-"),
        (None, {"name": "x", "project_id": None, "labels": {}}, "name: x"),
        ({"a": 1}, None, "-"),
        (None, None, "-"),
    ],
)
def test_what_has_changed(before: object, after: object, text: str) -> None:
    """What differs afterwards, the reason and whose it was first; nothing that has no value."""
    assert change_text(before, after) == text


def test_an_old_holder_before_a_line_is_shown() -> None:
    """`pool list` names the holder and the age; the full-screen view has a word for it."""
    old = built(Overstay, holder="alice", granted_at=before(hours=5), usual=240.0, blocks=True)
    behind = replace(WAITED_FOR, overstay=old)
    assert state_of(behind) == "full, overstay"
    assert explained(behind, NOW) == (
        "full, overstay: alice has units that have been held for 5h, usually at most 4m,"
        " and the line stands still"
    )
    assert explained(WAITED_FOR, NOW) == "full"
