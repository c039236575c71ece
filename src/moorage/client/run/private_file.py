"""Files with secrets: replaced as a whole, and readable only by their owner."""

from __future__ import annotations

import os


def write_private(path: str, text: str) -> None:
    """Replace the content of a file atomically; only its owner may read it (0600).

    Raises OSError.
    """
    import tempfile  # deferred: most runs write no file

    folder = os.path.dirname(os.path.abspath(path))
    descriptor, new = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise
