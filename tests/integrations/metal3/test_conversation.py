"""The double answers the conversation as a real API server has answered it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.kubernetes_conversation.comparing import problems, recorded
from tests.support.kubernetes_conversation.differences import KNOWN
from tests.support.kubernetes_conversation.double import answers_of_double
from tests.support.kubernetes_conversation.playing import STEPS
from tests.support.kubernetes_conversation.steps import Step
from tests.support.kubernetes_double import decoding, requests, schemas, status, writes

Plant = Callable[[pytest.MonkeyPatch], None]


def test_the_double_answers_as_a_real_server(tmp_path: Path) -> None:
    """It differs only in what is known, and in all of that."""
    assert problems(recorded(), answers_of_double(tmp_path), KNOWN) == []


def until(name: str) -> tuple[Step, ...]:
    """Return the steps to one of this name, which is the last one."""
    place = next(place for place, step in enumerate(STEPS) if step.name == name)
    return STEPS[: place + 1]


def nothing(*_: Any, **__: Any) -> list[Any]:
    """Do nothing, in place of a rule."""
    return []


def other_words(*words: Any) -> status.Refused:
    """Refuse an old version with other words."""
    return status.Refused(409, f"somebody was faster {words}")


LIES: dict[str, tuple[str, Plant]] = {
    "no defaults": ("one", lambda patch: patch.setattr(schemas, "set_defaults", nothing)),
    "no schema": ("wrong values", lambda patch: patch.setattr(schemas, "problems", nothing)),
    "no pruning": ("an unknown field", lambda patch: patch.setattr(schemas, "pruned", nothing)),
    "no warning": (
        "a finalizer",
        lambda patch: patch.setattr(decoding, "finalizer_warnings", nothing),
    ),
    "other words": ("an old version", lambda patch: patch.setattr(status, "conflict", other_words)),
    "old versions are stored": (
        "an old version",
        lambda patch: patch.setattr(writes.Writes, "_check_version", nothing),
    ),
    "a page has no end": (
        "a page",
        lambda patch: patch.setattr(requests.Received, "number", lambda *_: 0),
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_lies_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: with a rule taken away, the answer to the step in question differs."""
    step, plant = LIES[name]
    steps, right = until(step), recorded()
    expected = {one.name: right[one.name] for one in steps}
    plant(monkeypatch)
    found = problems(expected, answers_of_double(None, steps), KNOWN)
    assert any(line.startswith(f"{step}: ") and "any more" not in line for line in found)
