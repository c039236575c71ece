"""Texts with names in braces, which what has happened to a lease fills in."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

NAME = re.compile(r"\{([a-z]+(?:\.[^{}\s]+)?)\}")
"""A name in a text: `{id}`, `{labels.build}`, `{secrets.token}`."""

DOTS = ("", ".", "..")
"""Parts of a path that would address another place than the hook names."""


class UnfilledError(Exception):
    """A lease does not have what a template needs; the message says what."""


def names_in(template: Any) -> Iterator[str]:
    """Yield the names in a template: a text, or lists and tables of them."""
    if isinstance(template, str):
        yield from NAME.findall(template)
    elif isinstance(template, Mapping):
        for one in template.values():
            yield from names_in(one)
    elif isinstance(template, list):
        for one in template:
            yield from names_in(one)


def filled(template: Any, value: Callable[[str], str]) -> Any:
    """Return a template with its names filled in; what is no text stays. Raises UnfilledError."""
    if isinstance(template, str):
        return NAME.sub(lambda hit: value(hit[1]), template)
    if isinstance(template, Mapping):
        return {name: filled(one, value) for name, one in template.items()}
    return [filled(one, value) for one in template] if isinstance(template, list) else template


def in_address(name: str, text: str) -> str:
    """Return a value as a part of an address: it cannot leave its place. Raises UnfilledError."""
    if text in DOTS:
        raise UnfilledError(f"{name} is {text!r}, which is no part of an address")
    return quote(text, safe="")


def leaves(path: str) -> bool:
    """Could a receiver take a part of a path for a step to another place?

    Several names may make such a part together, and some servers decode a path before they look
    for its parts.
    """
    parts = re.split(r"[/\\]", unquote(path))
    return any(part.partition(";")[0] in (".", "..") for part in parts)
