"""The dataclasses of `wire`: frozen, keyword-only, with slots where Python has them, made in part.

`dataclasses` compiles six methods for each class, in 0.7 ms. There are 160 classes here, of which a
command uses a few. So the methods of a class are compiled when one of them is called first, which
takes a tenth of a second from the start of the server, and as much as half of a command's.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any, Callable, NoReturn

if TYPE_CHECKING:
    import inspect
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, slots: bool, kw_only: bool) -> Callable[[type], type]:
        """Make a dataclass, as `dataclasses` does; on Python 3.9 it has no slots."""
        assert frozen and slots and kw_only, "the types of wire are values"

        def made(kind: type) -> type:
            kind = dataclasses.dataclass(init=False, repr=False, eq=False, **_NEWER)(kind)
            assert not hasattr(kind, "__post_init__"), "nothing would call it"
            for name in _METHODS:
                setattr(kind, name, _late(kind, name))
            if not _NEW:  # its __init__ could not have fields without a default after others
                kind.__init__ = _init
            kind.__signature__ = _Signature()
            kind.__setattr__ = _refuse_set
            kind.__delattr__ = _refuse_delete
            if _NEW:  # else it has a `__dict__`, which is copied as a whole
                kind.__getstate__ = _state
                kind.__setstate__ = _restore
            return kind

        return made


def member(field: str) -> str:
    """Return the name of a field in JSON: words of Python such as `from` end with `_` here."""
    return field[:-1] if field.endswith("_") else field


def members(value: Any) -> Any:
    """Return a value with an object by members in JSON for each dataclass, at any depth."""
    if isinstance(value, dict):
        return {name: members(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [members(one) for one in value]
    if not dataclasses.is_dataclass(value):
        return value
    return {
        member(one.name): members(getattr(value, one.name)) for one in dataclasses.fields(value)
    }


_NEW = sys.version_info >= (3, 10)
"""Whether `dataclasses` knows slots and keyword-only fields."""

_NEWER: dict[str, bool] = {"slots": True, "kw_only": True} if _NEW else {}

_METHODS = ("__repr__", "__eq__", "__hash__", *(["__init__"] if _NEW else []))


def _late(kind: type, name: str) -> Callable[..., Any]:
    """Return a method that stands until it is called, and then has `kind` completed."""

    def first(self: Any, *args: Any, **given: Any) -> Any:
        _complete(kind)
        return getattr(kind, name)(self, *args, **given)

    return first


def _complete(kind: type) -> None:
    """Give a class the methods that `dataclasses` compiles, from a class with the same fields."""
    those = [
        (one.name, one.type, dataclasses.field(default=one.default))
        if one.default_factory is dataclasses.MISSING
        else (one.name, one.type, dataclasses.field(default_factory=one.default_factory))
        for one in dataclasses.fields(kind)
    ]
    extra: dict[str, Any] = {"kw_only": True} if _NEW else {"init": False}
    whole = dataclasses.make_dataclass(kind.__name__, those, frozen=True, **extra)
    for name in _METHODS:
        setattr(kind, name, getattr(whole, name))


class _Signature:
    """The signature of a class, for `help` and `inspect`."""

    def __get__(self, instance: object, kind: type) -> inspect.Signature:
        import inspect  # deferred: most programs never ask

        of = inspect.Parameter
        return inspect.Signature(
            [
                of(one.name, of.KEYWORD_ONLY, default=_default(one, of.empty), annotation=one.type)
                for one in dataclasses.fields(kind)
            ]
        )


def _default(field: dataclasses.Field[Any], none: Any) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return none if field.default_factory is dataclasses.MISSING else ...


def _init(self: Any, **given: Any) -> None:
    """Set all fields. Raises TypeError: a field is missing or unknown."""
    for field in dataclasses.fields(self):
        if field.name in given:
            value = given.pop(field.name)
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        else:
            raise TypeError(f"{type(self).__name__} needs the argument {field.name}")
        object.__setattr__(self, field.name, value)
    if given:
        raise TypeError(f"{type(self).__name__} has no argument {min(given)}")


def _refuse_set(self: Any, name: str, value: Any) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state):
        object.__setattr__(self, one.name, value)


__all__ = ["dataclass", "member", "members"]
