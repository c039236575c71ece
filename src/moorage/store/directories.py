"""Directories: the name of a file is durable only once its directory is synced."""

import os


def sync_directory(path: str) -> None:
    """Make the names in the directory of `path` durable."""
    directory = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
