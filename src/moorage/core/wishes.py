"""Which slots a request asks for by their labels.

Labels that are asked for are stored as text: a JSON object, sorted by name, so that equal wishes
have equal texts, also in SQL.
"""

from collections.abc import Mapping
from functools import lru_cache

from msgspec import json

_labels = json.Decoder(dict[str, str])


def wanted_of(labels: Mapping[str, str]) -> str:
    """Return the text of `Need.wanted` for these labels."""
    return json.encode(dict(sorted(labels.items()))).decode() if labels else ""


@lru_cache(maxsize=1_000)
def labels_of(wanted: str) -> Mapping[str, str]:
    """Return the labels of such a text."""
    return _labels.decode(wanted) if wanted else {}


def labels_text(wanted: str) -> str:
    """Return the labels for people: `region=eu, tier=2`."""
    return ", ".join(f"{name}={value}" for name, value in labels_of(wanted).items())


def suits(labels: Mapping[str, str], wanted: str) -> bool:
    """Do these labels of a slot include those that are asked for?"""
    return not wanted or labels_of(wanted).items() <= labels.items()
