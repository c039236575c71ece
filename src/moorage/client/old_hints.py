"""The types of a dataclass's fields on Python 3.9, which cannot evaluate `int | None`."""

from __future__ import annotations

import ast
import sys
from typing import Any, Union

UNION = "Union"


class _Unions(ast.NodeTransformer):
    """Replaces `A | B` with `Union[A, B]`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:  # the base class names it
        self.generic_visit(node)
        members = ast.Tuple(elts=[node.left, node.right], ctx=ast.Load())
        return ast.Subscript(value=ast.Name(UNION, ast.Load()), slice=members, ctx=ast.Load())


def old_hints(kind: type) -> dict[str, Any]:
    """Return the types by field, as `get_type_hints` does on newer Pythons."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        names = {**vars(sys.modules[base.__module__]), UNION: Union}
        for field, text in vars(base).get("__annotations__", {}).items():
            found[field] = eval(_compiled(text), names)  # the text is from our own sources
    return found


def _compiled(text: str) -> Any:
    tree = _Unions().visit(ast.parse(text, mode="eval"))
    return compile(ast.fix_missing_locations(tree), "<annotation>", "eval")
