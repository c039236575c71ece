"""Fills in the manifests."""

from collections.abc import Mapping
from importlib.resources import files
from string import Template

FILES = ("namespace", "rules", "governor", "policy", "webhook")
"""The manifests, in the order in which they are applied."""


def manifest(name: str, values: Mapping[str, str]) -> str:
    """Return the YAML documents of a manifest. Raises KeyError: a value is missing."""
    text = files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return Template(text).substitute(values)
