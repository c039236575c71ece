"""Documents that people or programs write: JSON, or YAML if the name of the file says so.

Either is read strictly: a key that is there twice is an error.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from moorage.cli.support.output import FAILED, USAGE, Failure

T = TypeVar("T")

YAML_ENDINGS = (".yaml", ".yml")

STREAM = "-"
"""The name of a file that is standard input, or standard output."""


def read(path: str, what: str, parse: Callable[[Any], T]) -> T:
    """Return what a file has; `-` is standard input. Raises Failure: 2.

    `parse` raises ValueError if the document is not what it should be; `what` is its name in
    messages.
    """
    try:
        text = sys.stdin.read() if path == STREAM else Path(path).read_text(encoding="utf-8")
        return parse(yaml_read(text) if path.endswith(YAML_ENDINGS) else json_read(text))
    except (OSError, ValueError, RecursionError) as error:
        raise Failure(USAGE, f"cannot read {what} in {path}: {reason_of(error)}") from None


def reason_of(error: Exception) -> str:
    """Return what is wrong, without the number of an OSError."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return getattr(error, "strerror", None) or str(error)


def yaml_read(text: str) -> Any:
    """Parse YAML. Raises ValueError, also for a repeated key."""
    import yaml  # deferred: most files are TOML

    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_names(node)
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    finally:
        loader.dispose()


def _check_names(root: Any) -> None:
    """Raise ValueError for a repeated key in a mapping; in PyYAML the last one wins."""
    rest, seen = [root], set()
    while rest:
        node = rest.pop()
        if id(node) in seen or node.id == "scalar":
            continue
        seen.add(id(node))  # aliases may repeat a node, or form a cycle
        if node.id == "sequence":
            rest += node.value
            continue
        names = [name.value for name, _ in node.value]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"'{twice[0]}' is defined twice")
        rest += [one for _, one in node.value]


def json_read(text: str) -> Any:
    """Parse JSON. Raises ValueError, also for a repeated key, of which `json` takes the last."""
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"'{name}' is defined twice")
        found[name] = value
    return found


def write(path: str, document: Any) -> None:
    """Write JSON to a file; `-` is standard output. Raises Failure: 1.

    A file is replaced as a whole: half a plan could be mistaken for one.
    """
    text = json.dumps(document, indent=2) + "\n"
    if path == STREAM:
        sys.stdout.write(text)
        return
    try:
        _replace(Path(path).resolve(), text)
    except OSError as error:
        raise Failure(FAILED, f"cannot write {path}: {error.strerror}") from None


def _replace(path: Path, text: str) -> None:
    """Write all of a file or nothing of it, with the permissions that it has. Raises OSError."""
    if path.exists() and not path.is_file():  # a device, or a pipe
        path.write_text(text, encoding="utf-8")
        return
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        if path.exists():
            partial.chmod(path.stat().st_mode & 0o777)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
