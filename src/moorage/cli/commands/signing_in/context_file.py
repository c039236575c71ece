"""Changes the file of contexts, see `client/contexts.py`: only its owner may read it."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from moorage.cli.support.output import FAILED, USAGE, Failure
from moorage.client import contexts
from moorage.client.contexts import Contexts


def known() -> Contexts:
    """Return all contexts. Raises Failure: 2, the file cannot be used."""
    with _reported():
        return contexts.read(contexts.path_of(os.environ))


def change(decide: Callable[[Contexts], Contexts]) -> None:
    """Replace the file by what `decide` makes of its present content; others wait meanwhile.

    Raises Failure: 2, the file cannot be used; 1, it cannot be written; and those of `decide`.
    """
    from moorage.client.run.private_file import write_private  # deferred: few commands

    path = contexts.path_of(os.environ)
    if path is None:
        raise Failure(USAGE, "this user has no home: name a folder with XDG_CONFIG_HOME")
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with _reported():
            contexts.check_writable(path)
        with _locked(f"{path}.lock"):
            with _reported():
                before = contexts.read(path)
            write_private(path, contexts.written(decide(before)).decode())
    except OSError as error:
        raise Failure(FAILED, f"cannot write {path}: {error.strerror}") from None


@contextmanager
def _reported() -> Iterator[None]:
    """Turn what is wrong with the file into a Failure."""
    try:
        yield
    except OSError as error:
        raise Failure(USAGE, f"cannot read {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None


@contextmanager
def _locked(path: str) -> Iterator[None]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
