"""Refuses the worst habits of the project's old prose in docstrings and comments.

Text in backticks is code and is not checked.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from tests.floorplan.tidy import Source

INSTEAD = {
    "whoever": "callers that, anyone who",
    "anew": "again",
    "told": "reported, returned, notified",
    "so many": "this many, at most N",
    "so long": "this long, at most N seconds",
}
"""Each word, and what to write instead."""

HABIT = re.compile(r"\b(" + "|".join(INSTEAD) + r")\b", re.IGNORECASE)
CODE = re.compile(r"`[^`]*`")


def dialect(source: Source) -> Iterator[str]:
    """Report docstrings and comments that use one of the words."""
    if not HABIT.search(source.text):
        return  # finding the docstrings and comments takes longer
    for line, text in prose(source):
        for found in HABIT.finditer(CODE.sub("", text)):
            word = found[0].lower()
            yield source.complaint(line, f"'{word}': write {INSTEAD[word]}")


def prose(source: Source) -> Iterator[tuple[int, str]]:
    """Yield every docstring and comment with the number of its first line."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
