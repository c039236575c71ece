"""The dataclasses of `wire` behave as those of `dataclasses`, although their methods come late."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from moorage.wire.dataclass import dataclass


def _made() -> tuple[type, type]:
    """Return a new class of each kind, whose methods nobody has called."""

    class Value:
        """A value."""

        name: str
        units: int = 1
        labels: tuple[str, ...] = dataclasses.field(default_factory=tuple)
        pool: str

    whole = type("Value", (), {**vars(Value), "__dict__": None, "__weakref__": None})
    options = {"frozen": True, "slots": True, "kw_only": True}
    ours: Any = dataclass
    return ours(**options)(Value), dataclasses.dataclass(**options)(whole)


def _shown(act: Callable[[Any, Any], Any], kind: type) -> Any:
    """Return what a call answers, or its error."""
    value = msgspec.convert({"name": "a", "pool": "p"}, kind)
    try:
        return act(kind, value)
    except (TypeError, AttributeError) as error:
        return type(error), str(error).partition(".<locals>.")[2] or str(error)


ACTS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda kind, value: repr(value).partition("Value")[2],
    lambda kind, value: value == kind(name="a", pool="p"),
    lambda kind, value: kind(name="a", pool="p") == value,
    lambda kind, value: value == kind(name="b", pool="p"),
    lambda kind, value: value == ("a", 1, (), "p"),
    lambda kind, value: hash(value) == hash(kind(name="a", pool="p", units=1)),
    lambda kind, value: {value, kind(name="a", pool="p")} == {value},
    lambda kind, value: kind("a"),
    lambda kind, value: kind(name="a"),
    lambda kind, value: kind(name="a", pool="p", other=1),
    lambda kind, value: setattr(value, "name", "b"),
    lambda kind, value: delattr(value, "name"),
    lambda kind, value: copy.copy(value) == value,
    lambda kind, value: copy.deepcopy(value) == value,
    lambda kind, value: value.__getstate__(),
    lambda kind, value: dataclasses.asdict(dataclasses.replace(value, units=2)),
    lambda kind, value: [(one.name, one.kw_only) for one in dataclasses.fields(kind)],
    lambda kind, value: (kind.__slots__, kind.__match_args__, kind.__doc__),
)


@pytest.mark.parametrize("number", range(len(ACTS)))
def test_a_value_behaves_as_with_dataclasses(number: int) -> None:
    """Whichever method is the first that is called, also on a value that was decoded."""
    ours, whole = _made()
    assert _shown(ACTS[number], ours) == _shown(ACTS[number], whole)


def test_a_class_may_have_a_base() -> None:
    """Their methods are their own: that of the one is not that of the other."""
    from moorage.wire.admin import Token, TokenMade
    from moorage.wire.audit import AuditAsked
    from moorage.wire.pages import PageAsked

    assert AuditAsked(limit=3) != PageAsked(limit=3)
    assert AuditAsked(limit=3) == AuditAsked(limit=3)
    assert {one.name for one in dataclasses.fields(Token)} < {
        one.name for one in dataclasses.fields(TokenMade)
    }


def test_tools_see_the_arguments() -> None:
    """Before and after the first use; in 3.9 all of them are keywords as well."""
    ours, whole = _made()
    for _ in range(2):
        seen = inspect.signature(ours).parameters
        expected = inspect.signature(whole).parameters
        assert [(one.name, one.kind) for one in seen.values()] == [
            (one.name, one.kind) for one in expected.values()
        ]
        assert (seen["name"].default, seen["units"].default) == (inspect.Parameter.empty, 1)
        assert ours(name="a", pool="p").units == 1


def test_values_are_pickled() -> None:
    """Programs of users pass them to other processes."""
    from moorage.wire.admission import Pacing

    decoded = msgspec.convert({"interval": 2.0}, Pacing)
    assert pickle.loads(pickle.dumps(decoded)) == decoded == Pacing(interval=2.0)
