"""Decides whether to trust files that were found by search instead of named by the user.

A file next to a database or in the current folder decides where tokens are sent. It is trusted only
if no user except this one and root can have written it. Source: `StrictModes` of OpenSSH.
Standard library only; runs on Python 3.9.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from typing import BinaryIO


class UntrustedError(ValueError):
    """Other users can read or write a file that they must not. The message is one line."""


def check_folder(folder: str, remedy: str, owner: int | None = None) -> None:
    """Check that no other user can replace files of a folder; the arguments are as of `read_own`.

    Raises UntrustedError; OSError: there is no such folder.
    """
    objection = _objection(folder, os.stat(folder), owner)
    if objection is not None:
        raise UntrustedError(f"{folder} is not used: {objection}; {remedy}")


def read_own(path: str, remedy: str, owner: int | None = None, *, secret: bool = False) -> bytes:
    """Return the content of a file that was found by search.

    Args:
        path: of the file.
        remedy: what to do if it is not trusted, for the message.
        owner: another user who may have written it; None: only this user and root.
        secret: others must not be able to read it either.

    Raises:
        UntrustedError: another user may have written it, or read a secret.
        OSError: it cannot be read.
    """
    os.stat(path)  # a missing file raises OSError, not UntrustedError
    folder = os.path.dirname(os.path.abspath(path))
    objection = _objection(folder, os.stat(folder), owner)
    if objection is None:
        with _opened(path) as stream:
            status = os.fstat(stream.fileno())
            objection = _objection(path, status, owner)
            if objection is None and not stat.S_ISREG(status.st_mode):
                objection = f"{path} is not a regular file"
            if objection is None and secret:
                _check_secret(path, status, None)
            if objection is None:
                return stream.read()
    raise UntrustedError(
        f"{path} is not used: {objection}, and this file decides where tokens are sent; {remedy}"
    )


def read_secret(path: str, owner: int | None = None) -> bytes:
    """Return the content of a secret file that only its owner may access.

    Checks and reads the same open file, even if the path is replaced in between. `owner`: the user
    id that must own it; None: any.

    Raises:
        UntrustedError: others can read or write it, it has another owner, or it is not a file.
        OSError: it does not exist, or this user may not read it.
    """
    with _opened(path) as stream:
        _check_secret(path, os.fstat(stream.fileno()), owner)
        return stream.read()


def _opened(path: str) -> BinaryIO:
    """Open a file for reading; does not block if it is a named pipe."""
    return open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def _check_secret(path: str, status: os.stat_result, owner: int | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UntrustedError(f"{path} is not used: it is not a regular file")
    if owner is not None and status.st_uid != owner:
        raise UntrustedError(
            f"{path} is not used: it belongs to {_user(status.st_uid)}, not to {_user(owner)}"
        )
    mode = stat.S_IMODE(status.st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UntrustedError(
            f"{path} has the mode {mode:04o}, so others can read it: `chmod 600 {path}`,"
            " then replace the token in it (`moorage token rotate`) unless nobody has read it"
        )


def _objection(path: str, status: os.stat_result, owner: int | None) -> str | None:
    """Return why a file or folder is not trusted; None if it is."""
    if status.st_uid not in (0, os.geteuid(), owner):
        return f"{path} belongs to {_user(status.st_uid)}"
    if status.st_mode & stat.S_IWOTH:
        return f"everybody can write to {path}"
    if status.st_mode & stat.S_IWGRP and not _is_own(status.st_gid):
        return f"others of its group can write to {path}"
    return None


def _user(uid: int) -> str:
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"the user {uid}"


def _is_own(gid: int) -> bool:
    """Return whether this is the user's private group, with no other members."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return (
        gid == user.pw_gid and group.gr_name == user.pw_name and {*group.gr_mem} <= {user.pw_name}
    )
