"""A server that reports which objects only the garbage collector would have freed.

    python -m tests.serve.cycles LISTEN DATABASE DIRECTORY

works like `moorage serve`. It answers each line on its standard input with one line of JSON: how
many objects of each type were left in cycles since the last line.
"""

import asyncio
import gc
import json
import os
import sys
from collections import Counter

import uvloop

from moorage.config import settings as config
from moorage.serve import lifecycle

PREFIX = "cycles: "


def left() -> Counter[str]:
    """Collect the objects left in cycles since the last call; return their number by type."""
    gc.disable()  # from the first call on, only this function collects
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    found = Counter(type(one).__name__ for one in gc.garbage)
    gc.set_debug(0)
    gc.garbage.clear()
    gc.collect()
    return found


def _loop() -> asyncio.AbstractEventLoop:
    loop = uvloop.new_event_loop()

    def asked() -> None:
        for _ in os.read(sys.stdin.fileno(), 4_096).splitlines():
            sys.stdout.write(f"{PREFIX}{json.dumps(left())}\n")
        sys.stdout.flush()

    loop.call_soon(loop.add_reader, sys.stdin.fileno(), asked)
    return loop


def main(listen: str, database: str, backups: str) -> int:
    """Serve until a signal arrives."""
    options = {"listen": listen, "database": database, "backup_directory": backups}
    return lifecycle.run(config.load({**options, "auth": "noauth2"}), _loop)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
