"""The examples of the OpenAPI description are what a real server answers."""

import json
from typing import Any

from moorage.faces.v1.openapi import EXAMPLES
from tests.faces.v1.recorded.scenario import recorded


def shape(value: Any) -> Any:
    """Return the names and types of a value, not its figures."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return type(value).__name__


def test_the_examples_are_current() -> None:
    """A server answers the same calls with the same members; `make openapi` updates them."""
    assert shape(recorded()) == shape(json.loads(EXAMPLES.read_text()))
