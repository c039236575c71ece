"""One list of arguments for all methods that make a lease."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from moorage.client.leasing.options import HoldingOptions

C = TypeVar("C")
R = TypeVar("R")
if TYPE_CHECKING:  # Python 3.9 has neither; type checkers and editors know both on 3.9, too
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")


def taking(
    read: Callable[P, HoldingOptions],
) -> Callable[[Callable[[C, HoldingOptions], R]], Callable[Concatenate[C, P], R]]:
    """Return a decorator of methods: `read` reads their arguments, and has their signature."""

    def decorate(method: Callable[[C, HoldingOptions], R]) -> Callable[Concatenate[C, P], R]:
        @functools.wraps(method)
        def taken(self: C, /, *arguments: P.args, **named: P.kwargs) -> R:
            return method(self, read(*arguments, **named))

        own, *_ = inspect.signature(method).parameters.values()
        signature = inspect.signature(read)
        taken.__signature__ = signature.replace(  # type: ignore[attr-defined] # as inspect reads it
            parameters=[own, *signature.parameters.values()],
            return_annotation=inspect.signature(method).return_annotation,
        )
        return taken

    return decorate
