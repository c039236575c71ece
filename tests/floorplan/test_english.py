"""Docstrings and comments are plain English, as far as a list of words can show it."""

import pytest

from tests.floorplan.english import dialect
from tests.floorplan.tidy import Source, sources


def test_no_old_habits() -> None:
    """The package, its tests and its benchmarks use none of the words."""
    trees = [source for folder in ("src", "tests", "bench", "demo") for source in sources(folder)]
    assert [line for source in trees for line in dialect(source)] == []


@pytest.mark.parametrize(
    "text",
    [
        '"""Tell whoever asks."""\n',
        "x = 1\n'''Read it Anew.'''\n",
        "def f():\n    pass  # nobody is told\n",
        'class A:\n    x: int\n    """So many of them."""\n',
        '"""It may take so long."""\n',
    ],
)
def test_planted_habits_are_caught(text: str) -> None:
    """The words are found in docstrings of modules, functions and attributes, and in comments."""
    assert list(dialect(Source("planted.py", text)))


def test_code_may_use_any_name() -> None:
    """Names in backticks, code and other strings are not prose."""
    text = '"""See `told` and `leases.anew`."""\ntold = anew("whoever")\n'
    assert list(dialect(Source("fine.py", text))) == []
