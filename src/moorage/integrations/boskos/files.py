"""Objects of Kubernetes in a file, as kubectl prints them: JSON or YAML, one or many, or lists."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import yaml

BYTES_MAX = 64 * 1024 * 1024
"""Of a file: far more than the resources of the largest known Boskos."""


class FileError(Exception):
    """A file has no objects of Kubernetes; the message is the reason."""


def objects_in(text: bytes) -> list[Any]:
    """Return the objects in a file. Raises FileError."""
    if len(text) > BYTES_MAX:
        raise FileError(f"it has more than {BYTES_MAX // 1024**2} MiB")
    found = [one for document in _documents(text) for one in _objects(document)]
    if not found:
        raise FileError("it has no objects")
    return found


def _documents(text: bytes) -> list[Any]:
    with suppress(ValueError, RecursionError):
        return [json.loads(text)]  # not all of JSON is YAML: pairs of surrogates are not
    # This loader returns every scalar as text, as Boskos has them, and makes no other objects.
    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        return [*yaml.load_all(text, Loader=loader)]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise FileError(f"it is neither YAML nor JSON: {' '.join(str(error).split())}") from None


def _objects(document: Any) -> Iterator[Any]:
    if isinstance(document, dict) and isinstance(document.get("items"), list):
        yield from document["items"]
    elif document not in (None, ""):
        yield document
