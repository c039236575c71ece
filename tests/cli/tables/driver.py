"""Runs commands of the command line one after another on this process's terminal.

The first argument is JSON: a list of widths with command lines. One process for all of them,
because most of the time of a command is its start. `END` follows each.
"""

import json
import sys
import termios

from moorage.cli.main import cli

END = "--- end ---"

if __name__ == "__main__":
    for columns, words in json.loads(sys.argv[1]):
        termios.tcsetwinsize(sys.stdout.fileno(), (24, columns))
        cli.main(words, prog_name="moorage", standalone_mode=False)
        sys.stdout.write(f"{END}\n")
        sys.stdout.flush()
