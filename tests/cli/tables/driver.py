"""Runs commands of the command line one after another on this process's terminal.

The first argument is JSON: a list of widths with command lines. One process for all of them,
because most of the time of a command is its start. `END` follows each. If the second argument is
`broken`, two columns of `lease list` are exchanged: the control of the golden texts.
"""

import json
import sys
import termios

from moorage.cli.commands import lease
from moorage.cli.main import cli

END = "--- end ---"

BROKEN = "broken"

if __name__ == "__main__":
    if sys.argv[2:] == [BROKEN]:
        first, second, *others = lease.COLUMNS
        lease.COLUMNS = (second, first, *others)
    for width, words in json.loads(sys.argv[1]):
        termios.tcsetwinsize(sys.stdout.fileno(), (24, width))
        cli.main(words, prog_name="moorage", standalone_mode=False)
        sys.stdout.write(f"{END}\n")
        sys.stdout.flush()
