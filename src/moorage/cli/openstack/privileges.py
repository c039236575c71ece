"""Gives up root's privileges: kolla's containers start as root, and the server must not be root."""

import os
import pwd

from moorage.store.addresses import is_postgres, sqlite_path

ROOT = 0


def become(user: str) -> None:
    """Become a user, given by name or number, if this process is root.

    Raises:
        KeyError: there is no such user.
        OSError: the process may not.
    """
    if os.geteuid() != ROOT:
        return
    found = pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
    groups = os.getgrouplist(found.pw_name, found.pw_gid)
    _be(found.pw_uid, found.pw_gid, groups)
    os.environ["HOME"] = found.pw_dir


def become_owner(database: str) -> None:
    """Become the owner of the folder of a SQLite file, if this process is root.

    Otherwise the server could not use a file that root has created.

    Raises:
        Unusable: it is not the address of a database.
        OSError: the process may not.
    """
    if os.geteuid() != ROOT or is_postgres(database):
        return
    folder = os.path.dirname(sqlite_path(database))
    if os.path.isdir(folder):
        owner = os.stat(folder)
        if owner.st_uid != ROOT:
            _be(owner.st_uid, owner.st_gid, [owner.st_gid])


def _be(user: int, group: int, groups: list[int]) -> None:
    os.setgroups(groups)
    os.setgid(group)
    os.setuid(user)
