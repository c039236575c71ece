"""Follows a server and writes down the changes; made to be killed at any moment.

    python -m tests.e2e.support.reader URL FILE

Each line of the file is a cursor and the change before it. It begins after the last complete line.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from moorage.client.transport import Transport
from moorage.client.watch import Watch


def last_cursor(path: Path) -> str:
    """Remove an incomplete last line; return the cursor to begin after."""
    text = path.read_bytes() if path.exists() else b""
    whole = text[: text.rfind(b"\n") + 1]
    path.write_bytes(whole)
    lines = whole.splitlines()
    cursor: str = json.loads(lines[-1])["cursor"] if lines else "1.0"
    return cursor


def main(url: str, path: Path) -> None:
    """Follow until killed."""
    watch = Watch(Transport(url, "admin"), last_cursor(path))
    with path.open("a") as file:
        for change in watch:
            told = asdict(change)
            file.write(json.dumps({"cursor": watch.cursor, **told}, default=str) + "\n")
            file.flush()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
